#include "slurm/local/slurmd_probe.h"

#include <utility>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

constexpr int kFirstYear = 25;
constexpr int kFirstMonth = 11;
constexpr int kServes = 204;
constexpr int kQuiesced = 500;

}  // namespace

bool has_readyz(std::string_view version) {
  const auto parts = split(version, '.');
  if (parts.size() < 2) {
    return false;
  }
  const auto year = parse_int<int>(parts[0]);
  const auto month = parse_int<int>(parts[1]);
  return year && month && std::pair{*year, *month} >= std::pair{kFirstYear, kFirstMonth};
}

void SlurmdProbe::ask(int port, std::string_view version, SteadyTime now) {
  if (port == 0 || !has_readyz(version) || !make_client_) {
    forget();
    return;
  }
  if (stream_) {
    return;
  }
  if (port != port_ || !client_) {
    client_ = make_client_(port);
    port_ = port;
  }
  if (!client_) {
    ready_.reset();
    return;
  }
  http::Request request;
  request.path = "/readyz";
  request.timeout = kTimeout;
  deadline_ = now + kTimeout;
  stream_ = client_->open_stream(request);
}

void SlurmdProbe::forget() { end(std::nullopt); }

void SlurmdProbe::end(std::optional<bool> ready) {
  ready_ = ready;
  stream_.reset();
  deadline_ = kNever;
}

SteadyTime SlurmdProbe::step(SteadyTime now) {
  if (!stream_) {
    return kNever;
  }
  const int status = stream_->status();
  if (status == kServes || status == kQuiesced) {
    end(status == kServes);
  } else if (status != 0 || stream_->ended() || now >= deadline_) {
    end(std::nullopt);
  }
  return deadline_;
}

}  // namespace slurmlet::slurm
