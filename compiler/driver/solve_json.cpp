#include "compiler/driver/solve_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return nullptr;
    case Value::Kind::boolean:
      return value.boolean();
    case Value::Kind::integer:
      return value.integer();
    case Value::Kind::floating:
      return std::isfinite(value.floating()) ? Json(value.floating()) : Json(to_text(value));
    case Value::Kind::string:
      return value.string();
    case Value::Kind::list: {
      Json list = Json::array();
      for (const Value& item : value.list()) list.push_back(as_json(item));
      return list;
    }
    case Value::Kind::table: {
      Json table = Json::object();
      for (const auto& [key, item] : value.table()) table[key] = as_json(item);
      return table;
    }
  }
  return nullptr;
}

// Text of a config may hold any bytes; JSON holds UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json participant(const SolveSession& session, FactId fact, const std::vector<Assignment>& changes) {
  const Subject& subject = session.subject();
  const Fact& now = subject.facts.values[fact];
  Json out{{"key", subject.name(fact)}};
  const auto change = std::find_if(changes.begin(), changes.end(),
                                   [fact](const Assignment& one) { return one.fact == fact; });
  if (change != changes.end()) {
    out["value"] = as_json(change->value);
    out["asked_for"] = true;
    return out;
  }
  out["value"] = now.is_version ? Json(to_text(now.version)) : as_json(now.value);
  out["set"] = now.set;
  out["place"] = session.place_of(fact);
  return out;
}

Json rule(const RuleItem& item) {
  return Json{{"code", item.code}, {"name", item.name}};
}

}  // namespace

std::string json_of(const Value& value) {
  return dump(as_json(value));
}
std::string json_of_text(const std::string& text) {
  return dump(Json(text));
}

std::string json_of(const SolveSession& session, const Conflict& conflict, const std::string& message,
                    const std::vector<Assignment>& changes) {
  Json out = rule(session.subject().index().item(conflict.position));
  out["message"] = message;
  out["minimal"] = conflict.minimal == Answer::unsat;
  out["because"] = Json::array();
  for (const Participant& one : conflict.participants)
    out["because"].push_back(participant(session, one.fact, changes));
  return dump(out);
}

std::string json_of(const SolveSession& session, const MinimalConflict& conflict,
                    const std::vector<Assignment>& changes) {
  Json out{{"keys", Json::array()}, {"rules", Json::array()}};
  for (const FactId key : conflict.keys) out["keys"].push_back(participant(session, key, changes));
  for (const std::uint32_t position : conflict.rules)
    out["rules"].push_back(rule(session.subject().index().item(position)));
  return dump(out);
}

std::string json_of(const SolveSession& session, const std::vector<std::uint32_t>& rules) {
  Json out = Json::array();
  for (const std::uint32_t position : rules) out.push_back(rule(session.subject().index().item(position)));
  return dump(out);
}

std::string json_of(const SolveSession& session, const std::vector<Assignment>& changes) {
  Json out = Json::array();
  for (const Assignment& change : changes) {
    Json one{{"key", session.subject().name(change.fact)}};
    if (change.set)
      one["value"] = as_json(change.value);
    else
      one["unset"] = true;
    out.push_back(std::move(one));
  }
  return dump(out);
}

std::string json_of(const SolveSession& session, const Repair& repair) {
  return "{\"changes\":" + json_of(session, repair.changes) + ",\"cost\":\"" + cost_class_name(repair.cost) +
         "\",\"applicability\":\"" + applicability_name(repair.applicability) + "\"}";
}

std::string json_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? "," : "") + item;
  return out + "]";
}

std::string json_document(const std::string& text) {
  return Json::parse(text).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace capstan
