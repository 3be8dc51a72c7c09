// A list that is too long for one answer.

#include "kube/list_watch.h"
#include "kube/watch_fixture.h"

namespace slurmlet::kube {
namespace paged_list_test {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Type = WatchEvent<Pod>::Type;

struct Object {
  std::string name;
  std::size_t size;
};

std::vector<Object> objects(int count, std::size_t size) {
  std::vector<Object> out;
  for (int i = 0; i < count; ++i) {
    out.push_back({"p" + std::to_string(i), size});
  }
  return out;
}

// The server: objects by name and size, and what it gives of them within the limit of a request.
class PagedListTest : public ::testing::Test, protected WatchRig {
 protected:
  // Answers the next request as the API server does; the client cuts what is too long.
  void serve(std::vector<Object> objects) {
    objects_ = std::move(objects);
    client_.responder = [this](const http::Request& request) -> http::Response {
      const std::string& path = request.path;
      const auto number = [&path](const std::string& key, std::size_t absent) {
        const auto at = path.find(key);
        return at == std::string::npos ? absent : std::stoul(path.substr(at + key.size()));
      };
      const bool names = request.accept.find("PartialObjectMetadataList") != std::string::npos;
      const std::size_t from = number("&continue=", 0);
      const std::size_t to = std::min(objects_.size(), from + number("&limit=", objects_.size()));
      std::string items;
      for (std::size_t i = from; i < to; ++i) {
        items += (i > from ? "," : "") + object(objects_[i], names);
      }
      const std::string token = to < objects_.size() ? std::to_string(to) : "";
      http::Response response;
      response.status = 200;
      response.body = R"({"metadata":{"resourceVersion":"700","continue":")" + token +
                      R"("},"items":[)" + items + "]}";
      response.is_cut = response.body.size() > request.max_body;
      EXPECT_TRUE(request.may_be_cut);
      EXPECT_LE(request.max_body, ListWatch::kMaxObjectBytes);
      return response;
    };
  }
  static std::string object(const Object& object, bool names_only) {
    const std::size_t padding = names_only ? 0 : object.size;
    return R"({"metadata":{"namespace":"d","name":")" + object.name + R"(","uid":"u-)" +
           object.name + R"("},"spec":{"x":")" + std::string(padding, 'x') + R"("}})";
  }
  // Steps until the list is complete; everything it gave, in order, as names.
  std::vector<std::string> list() {
    std::vector<std::string> names;
    for (int i = 0; i < 2000 && opened() == 0; ++i) {
      step();
      for (const auto& event : events_) {
        types_.push_back(event.type);
        for (const Pod& pod : event.objects) {
          names.push_back(pod.name);
        }
      }
    }
    EXPECT_FALSE(watch_->last_error());
    return names;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Object& object : objects_) {
      out.push_back(object.name);
    }
    return out;
  }

  std::vector<Object> objects_;
  std::vector<Type> types_;
};

class PagesTest : public PagedListTest {};

TEST_F(PagesTest, AreAsLargeAsFits) {
  auto mixed = objects(200, 40'000);
  mixed[100].size = 9'000'000;
  const struct {
    std::vector<Object> objects;
    std::size_t most_requests;
  } rows[] = {
      {objects(2, 10), 1}, {objects(20, 260'000), 5}, {objects(2000, 2500), 40}, {mixed, 100}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.most_requests);
    client_.requests.clear();
    client_.stream_requests.clear();
    types_.clear();
    watch_->restart();
    serve(row.objects);
    EXPECT_EQ(list(), names());
    EXPECT_THAT(types_, ElementsAre(Type::kReplaced)) << "the set as a whole, when it is whole";
    EXPECT_THAT(watch_->unreadable(), IsEmpty());
    EXPECT_EQ(resumed_from(), "700");
    EXPECT_LE(listed(), row.most_requests);
  }
}

TEST_F(PagedListTest, WhatIsTooLargeAloneIsLeftOutByNameAndLookedAtAgain) {
  serve({{"a", 10}, {"huge", 11'000'000}, {"b", 10}});
  EXPECT_THAT(list(), ElementsAre("a", "b"));
  EXPECT_THAT(watch_->unreadable(), ElementsAre("d/huge"));
  EXPECT_THAT(types_, Each(Type::kModified)) << "what could not be read was not deleted";
  client_.stream().status = 200;
  objects_[1].size = 10;
  const std::size_t before = listed();
  int waited = 0;
  while (listed() == before && waited < 10) {
    clock_.advance(minutes{1});
    client_.stream().feed(bookmark(std::to_string(800 + ++waited)));
    step();
  }
  EXPECT_GE(waited, 3);
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  EXPECT_EQ(events_[0].objects.size(), 3U);
  EXPECT_THAT(watch_->unreadable(), IsEmpty());
}

TEST_F(PagedListTest, AWaitForHeadersPastThatTimeDoesNotSpin) {
  serve({{"huge", 11'000'000}});
  list();
  clock_.advance(minutes{10});
  client_.stream().break_off({Code::kUnavailable, "reset"});
  EXPECT_GT(until_wake(), Duration::zero());
}

TEST_F(PagedListTest, AnErrorInBetweenGoesOnWithTheSamePageAndAnExpiredTokenStartsAnew) {
  for (const int status : {503, 410}) {
    SCOPED_TRACE(status);
    client_.requests.clear();
    client_.stream_requests.clear();
    watch_->restart();
    serve(objects(40, 200'000));
    while (client_.requests.empty() || client_.last().path.find("continue") == std::string::npos) {
      ASSERT_LE(until_wake(), Duration::zero());
    }
    client_.answer(status, status_json(status, status == 410 ? "Expired" : "ServiceUnavailable"));
    const Duration pause = until_wake();
    EXPECT_GT(pause, Duration::zero());
    const std::string page = client_.last().path;
    const std::size_t before = listed();
    clock_.advance(pause);
    EXPECT_EQ(list(), names()) << "nothing twice";
    EXPECT_EQ(client_.requests.at(before).path == page, status == 503);
    EXPECT_EQ(client_.requests.at(before).path.find("continue") == std::string::npos,
              status == 410);
  }
}

TEST_F(PagedListTest, AnEventThatIsTooLargeIsListed) {
  serve({{"a", 10}});
  list();
  client_.stream().status = 200;
  objects_.push_back({"huge", 11'000'000});
  client_.stream().feed(line("ADDED", object(objects_[1], false)));
  const Duration pause = until_wake();
  EXPECT_EQ(problem(), Code::kInternal);
  EXPECT_TRUE(client_.stream().closed);
  clock_.advance(pause);
  for (int i = 0; i < 10 && opened() == 1; ++i) {
    step();
  }
  EXPECT_THAT(watch_->unreadable(), ElementsAre("d/huge"));
  EXPECT_EQ(opened(), 2U) << "and the watch goes on behind it";
}

TEST_F(PagedListTest, AnObjectThatMakesNoSenseIsLeftOutAlone) {
  client_.answer(200, list_json("5", pod_json("a", "1") + R"(,{"metadata":{"name":"odd"}})"));
  step();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].objects.at(0).name, "a");
  EXPECT_THAT(watch_->unreadable(), ElementsAre("/odd"));
  EXPECT_FALSE(watch_->last_error());
}

}  // namespace paged_list_test
}  // namespace slurmlet::kube
