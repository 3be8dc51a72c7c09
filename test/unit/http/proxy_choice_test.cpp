#include "http/proxy_choice.h"

#include <gtest/gtest.h>

namespace slurmlet::http {
namespace {

constexpr const char* kProxy = "http://proxy.example:3128";

TEST(ProxyChoiceTest, FollowsTheRulesOfTheKubelet) {
  const struct {
    const char* url;
    const char* no_proxy;
    bool proxied;
  } table[] = {
      {"https://api.example:6443", "", true},
      {"https://api.example:6443/prefix", "other.example, 192.0.2.0/24", true},
      {"http://api.example:6443", "", false},
      {"https://localhost:6443", "", false},
      {"https://127.0.0.5:6443", "", false},
      {"https://[::1]:6443", "", false},
      {"https://api.example:6443", "*", false},
      {"https://api.example:6443", "a.org,api.example", false},
      {"https://API.Example", "api.EXAMPLE", false},
      {"https://api.example:6443", "example", false},
      {"https://api.example:6443", ".example", false},
      {"https://api.example:6443", "*.example", false},
      {"https://example:6443", ".example", true},
      {"https://badexample:6443", "example", true},
      {"https://api.example:6443", "api.example:6443", false},
      {"https://api.example:6443", "api.example:443", true},
      {"https://api.example", "api.example:443", false},
      {"https://192.0.2.10:6443", "192.0.2.0/24", false},
      {"https://192.0.3.10:6443", "192.0.2.0/24", true},
      {"https://192.0.3.10:6443", "192.0.2.0/23", false},
      {"https://192.0.2.10:6443", "192.0.2.10", false},
      {"https://192.0.2.10:6443", "2.10", true},
      {"https://[2001:db8::1]:6443", "2001:db8::/32", false},
      {"https://[2001:db8::1]:6443", "2001:db8:0::1", false},
      {"https://[2001:db8::1]:6443", "[2001:db8::1]:6443", false},
      {"https://[2001:db8::1]:6443", "192.0.2.0/24", true},
      {"https://api.example:6443", "192.0.2.0/24,/8,x/y", true},
      {"https://api.example:6443", " ,, ", true},
  };
  for (const auto& row : table) {
    EXPECT_EQ(proxy_for(row.url, kProxy, row.no_proxy), row.proxied ? kProxy : "")
        << row.url << " with " << row.no_proxy;
  }
}

TEST(ProxyChoiceTest, TheSchemeMayBeMissing) {
  EXPECT_EQ(proxy_for("https://a", "proxy:3128", ""), "http://proxy:3128");
  EXPECT_EQ(proxy_for("https://a", "https://proxy", ""), "https://proxy");
  EXPECT_EQ(proxy_for("https://a", "", ""), "");
}

TEST(ProxyChoiceTest, WhatIsShownOfAProxyHoldsNoSecret) {
  const struct {
    const char* url;
    const char* shown;
  } kRows[] = {
      {"http://proxy.example:3128", "proxy.example:3128"},
      {"https://proxy.example:3128/", "proxy.example:3128"},
      {"proxy.example:3128", "proxy.example:3128"},
      {"http://proxy.example", "proxy.example"},
      {"socks5://[2001:db8::1]:1080", "[2001:db8::1]:1080"},
      {"http://me:secret@proxy.example:3128/?q", "proxy.example:3128"},
      {"http://me:sec@ret@proxy.example:3128", "proxy.example:3128"},
      {"http://me:sec/ret@proxy.example:3128", "proxy.example:3128"},
      {"me:secret@proxy.example:3128", "proxy.example:3128"},
      {"http://me:secret@", ""},
      {"", ""},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(proxy_shown(row.url), row.shown) << row.url;
  }
}

TEST(ServerOf, HostAndPortOfAUrl) {
  const struct {
    const char* url;
    const char* host;
    const char* port;
  } kRows[] = {
      {"https://api.example:6443/prefix", "api.example", "6443"},
      {"https://API.example", "api.example", "443"},
      {"http://localhost", "localhost", "80"},
      {"https://[2001:db8::1]:6443", "2001:db8::1", "6443"},
      {"https://[2001:db8::1]/", "2001:db8::1", "443"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(server_of(row.url).host, row.host) << row.url;
    EXPECT_EQ(server_of(row.url).port, row.port) << row.url;
  }
}

}  // namespace
}  // namespace slurmlet::http
