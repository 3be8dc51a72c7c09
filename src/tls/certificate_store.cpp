#include "tls/certificate_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/detached_task.h"
#include "base/file.h"
#include "base/rfc3339.h"
#include "base/unique_fd.h"
#include "tls/certificates.h"
#include "tls/pem.h"

namespace slurmlet::tls {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr std::size_t kKeep = 2;
constexpr const char* kLinkTemporary = ".tmp-";

Status sync_path(const fs::path& directory) {
  const UniqueFd fd{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd) {
    return errno_error(errno, "open directory " + directory.string());
  }
  // Some file systems cannot do it to a directory, and say so.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) {
    return errno_error(errno, "fsync " + directory.string());
  }
  return {};
}

// Whether it was there.
Result<bool> remove_file(const fs::path& path) {
  touches_file(path.native());
  if (::unlink(path.c_str()) == 0) {
    return true;
  }
  return errno == ENOENT ? Result<bool>{false} : errno_error(errno, "remove " + path.string());
}

// Whatever is missing above it gets mode 0755 (std::filesystem would use 0777).
Status make_directories(const fs::path& path, mode_t mode) {
  std::error_code ignored;
  if (path.empty() || fs::exists(path, ignored)) {
    return {};
  }
  const fs::path parent = path.parent_path();
  if (auto made = make_directories(parent, 0755); !made) {
    return made;
  }
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return errno_error(errno, "make directory " + path.string());
  }
  return sync_path(parent.empty() ? "." : parent);
}

Error damaged(const fs::path& path, const char* why) {
  return {Code::kInvalid,
          fmt::format("{}: {}; remove it, and a new certificate is requested", path.string(), why)};
}

// Certificates and key of one file, each part written anew: text around the blocks is dropped.
Result<StoredCertificate> parse_stored(const std::string& text, const fs::path& path) {
  const auto certificates = parse_certificates(text, path);
  if (!certificates) {
    return damaged(path, "contains no certificate or is truncated");
  }
  const auto key = parse_private_key(text, path);
  if (!key) {
    return damaged(path, "contains no private key or is truncated");
  }
  StoredCertificate stored;
  for (const auto& certificate : *certificates) {
    stored.certificate_pem += to_pem(certificate.get());
  }
  stored.key_pem = to_pem(key->get());
  if (!is_pair(stored.certificate_pem, stored.key_pem)) {
    return damaged(path, "the private key does not belong to the first certificate");
  }
  stored.summary = summarize(*certificates->front());
  return stored;
}

}  // namespace

CertificateStore::CertificateStore(fs::path directory, std::string name)
    : directory_(directory.has_filename() ? std::move(directory) : directory.parent_path()),
      name_(std::move(name)) {}

fs::path CertificateStore::current_path() const { return directory_ / (name_ + "-current.pem"); }
fs::path CertificateStore::pending_path() const { return directory_ / (name_ + ".key.tmp"); }

fs::path CertificateStore::dated_path(WallTime time) const {
  std::string date = rfc3339(time);  // 2026-11-21T12:00:00Z
  date.pop_back();
  std::ranges::replace_if(
      date, [](char c) { return c == 'T' || c == ':'; }, '-');
  return directory_ / fmt::format("{}-{}.pem", name_, date);
}

// NAME-DATE.pem, so that a store named "a" leaves alone the files of one named "a-b".
bool CertificateStore::is_dated(const std::string& file) const {
  if (!file.starts_with(name_ + "-")) {
    return false;
  }
  std::string form = file.substr(name_.size());
  std::ranges::replace_if(
      form, [](char c) { return c >= '0' && c <= '9'; }, '0');
  return form == "-0000-00-00-00-00-00.pem";
}

// Temporary files of write_file_atomic() and of swap_current().
bool CertificateStore::is_leftover(const std::string& file) const {
  if (file.starts_with(current_path().filename().string() + kLinkTemporary)) {
    return true;
  }
  const auto target = unfinished_target(file);
  return target && (*target == pending_path().filename() || is_dated(*target));
}

Result<std::optional<StoredCertificate>> CertificateStore::current() const {
  const fs::path path = current_path();
  const auto text = read_file(path);
  if (text) {
    auto stored = TRY(parse_stored(*text, path));
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) {
      stored.stored_at = std::chrono::system_clock::from_time_t(info.st_mtime);
    }
    return std::optional{std::move(stored)};
  }
  if (text.error().code != Code::kNotFound) {
    return text.error().code == Code::kInvalid
               ? damaged(path, "is not a regular file of a plausible size")
               : text.error();
  }
  std::error_code ignored;
  if (fs::is_symlink(path, ignored)) {
    return damaged(path, "is a link to a file that is missing");
  }
  return std::optional<StoredCertificate>{};
}

Result<std::optional<std::string>> CertificateStore::read_pending() const {
  const auto text = read_file(pending_path());
  if (!text && text.error().code != Code::kNotFound && text.error().code != Code::kInvalid) {
    return text.error();
  }
  const auto key = parse_private_key(text ? *text : std::string{}, pending_path());
  if (!key) {
    return std::optional<std::string>{};
  }
  std::string pem = to_pem(key->get());
  const auto now = current();
  if (now && *now && is_pair((*now)->certificate_pem, pem)) {
    return std::optional<std::string>{};
  }
  return std::optional{std::move(pem)};
}

bool CertificateStore::has_pending_key() const {
  const auto key = read_pending();
  // One that cannot be read is there: pending_key() says what is wrong with it.
  return !key || *key;
}

Result<std::string> CertificateStore::pending_key() {
  auto kept = TRY(read_pending());
  if (kept) {
    return std::move(*kept);
  }
  auto fresh = TRY(generate_key());
  TRY(make_directories(directory_, kDirectoryMode));
  TRY(write_file_atomic(pending_path(), fresh, kFileMode));
  TRY(sync_path(directory_));
  return fresh;
}

Status CertificateStore::discard_pending_key() {
  const auto removed = TRY(remove_file(pending_path()));
  return removed ? sync_path(directory_) : Status{};
}

Result<StoredCertificate> CertificateStore::accept(const std::string& certificate_pem,
                                                   WallTime now) {
  const auto key = TRY(read_pending());
  if (!key) {
    return Error{Code::kNotFound, pending_path().string() +
                                      ": the key of the request is gone; make another request"};
  }
  const auto certificates = TRY(parse_certificates(certificate_pem, "issued certificate"));
  if (!is_pair(certificate_pem, *key)) {
    return Error{Code::kInvalid, "the issued certificate does not belong to the key in " +
                                     pending_path().string() + "; make another request"};
  }
  StoredCertificate stored{{}, *key, summarize(*certificates.front()), now};
  for (const auto& certificate : certificates) {
    stored.certificate_pem += to_pem(certificate.get());
  }
  fs::path path = dated_path(now);
  for (std::error_code ignored; fs::exists(fs::symlink_status(path, ignored));) {
    now += std::chrono::seconds{1};
    path = dated_path(now);
  }
  // Each step is on disk before the next one builds on it.
  TRY(write_file_atomic(path, stored.certificate_pem + *key, kFileMode));
  TRY(sync_path(directory_));
  TRY(swap_current(path.filename()));
  // From here on the new pair is current; what cannot be tidied up now counts as none.
  if (remove_file(pending_path())) {
    prune(path.filename());
  }
  static_cast<void>(sync_path(directory_));
  return stored;
}

Status CertificateStore::swap_current(const std::string& target) const {
  const fs::path link = current_path();
  const fs::path temporary = link.string() + kLinkTemporary + std::to_string(::getpid());
  TRY(remove_file(temporary));
  // Relative, so that the directory may be moved or mounted elsewhere.
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    return errno_error(errno, "link " + temporary.string());
  }
  if (::rename(temporary.c_str(), link.c_str()) != 0) {
    const int saved = errno;
    ::unlink(temporary.c_str());
    return errno_error(saved, "rename " + link.string());
  }
  return sync_path(directory_);
}

void CertificateStore::prune(const std::string& current) const {
  const auto files = list_directory(directory_);
  if (!files) {
    return;
  }
  std::vector<std::string> dated;
  for (const auto& file : *files) {
    if (is_leftover(file)) {
      static_cast<void>(remove_file(directory_ / file));
    } else if (is_dated(file) && file != current) {
      dated.push_back(file);
    }
  }
  std::sort(dated.begin(), dated.end(), std::greater<>{});
  for (std::size_t i = kKeep - 1; i < dated.size(); ++i) {
    static_cast<void>(remove_file(directory_ / dated[i]));
  }
}

}  // namespace slurmlet::tls
