#include "config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <sstream>

namespace sluice::config {
namespace {

// What ends the building; never leaves this file.
struct Stop {
  int line;
  int column;
  std::string message;
};

// yaml-cpp takes 0x04 for the end of the input and would silently drop the rest, and it guesses encodings
// from NULs. YAML 1.2.2 5.1 allows no such character anyway.
void CheckCharacters(std::string_view yaml) {
  int line = 1;
  int column = 1;
  for (unsigned char c : yaml) {
    if (c == '\n') {
      ++line;
      column = 1;
      continue;
    }
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
      throw Stop{line, column, "a control character; only UTF-8 text is allowed"};
    }
    if (static_cast<size_t>(++column) > kLineBytesMax + 1) {
      throw Stop{line, 1, "the line is longer than 1MiB"};
    }
  }
}

std::string_view LineOf(std::string_view text, int line) {
  for (; line > 1; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

// Where in the line an IPv6 address with its port begins that has no quotes: to YAML it is a list, of which something
// follows. 0: there is none.
size_t BareAddressIn(std::string_view line) {
  for (size_t begin = line.find('[', 1); begin != line.npos; begin = line.find('[', begin + 1)) {
    const size_t end = line.find_first_not_of("0123456789abcdefABCDEF:.", begin + 1);
    if (end == line.npos || line[end] != ']' || end + 1 == line.size() || line[end + 1] != ':') continue;
    const std::string_view inside = line.substr(begin + 1, end - begin - 1);
    const bool quoted = line[begin - 1] == '"' || line[begin - 1] == '\'';
    if (!quoted && std::count(inside.begin(), inside.end(), ':') >= 2) return begin;
  }
  return 0;
}

// What was most likely meant where the parser found a mistake in `line`: what it says itself is about its grammar.
// Nothing: that is all that is to be said. *at_line and *at_column become the place of what is wrong.
std::string HintOf(std::string_view yaml, int* at_line, int* at_column) {
  for (int line = *at_line; line > 0 && line >= *at_line - 1; --line) {
    const std::string_view text = LineOf(yaml, line);
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == text.npos || text[begin] == '#') continue;
    const size_t tab = text.find('\t');
    const size_t address = BareAddressIn(text);
    if (tab >= begin && address == 0) continue;
    *at_line = line;
    *at_column = static_cast<int>(tab < begin ? tab : address) + 1;
    if (tab < begin) return "; a tab indents this line, where only blanks are allowed";
    return "; an IPv6 address is written in quotes: \"[::1]:7070\"";
  }
  return "";
}

}  // namespace

// Collects the events of one document. Invariant: open_ holds the containers begun and not ended, outermost first.
class YamlTree::Builder : public YAML::EventHandler {
 public:
  explicit Builder(YamlTree* tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Stop{mark.line + 1, mark.column + 1, "a second document; only one is allowed"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Leaf(mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseTag(mark, tag);
    Node* node = Leaf(mark, anchor);
    node->kind = Node::Kind::kScalar;
    node->text = value;
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (anchor >= anchors_.size() || anchors_[anchor] == nullptr) Fail(mark, "an alias without its anchor");
    Node* node = anchors_[anchor];
    if (!node->complete) Fail(mark, "an alias inside its own anchor");
    Attach(mark, node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Node::Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  [[noreturn]] static void Fail(const YAML::Mark& mark, std::string message) {
    throw Stop{mark.line + 1, mark.column + 1, std::move(message)};
  }

  // "?" and "!" are the parser's words for an untagged plain or quoted scalar (YAML 1.2.2 6.9.1).
  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") Fail(mark, "tags are not supported");
  }

  Node* Make(const YAML::Mark& mark, YAML::anchor_t anchor) {
    Node* node = &tree_->nodes_.emplace_back();
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    node->file = &tree_->file_;
    if (anchor != 0) {  // 0: none. The parser counts them from 1.
      if (anchors_.size() <= anchor) anchors_.resize(anchor + 1);
      anchors_[anchor] = node;
    }
    return node;
  }

  Node* Leaf(const YAML::Mark& mark, YAML::anchor_t anchor) {
    Node* node = Make(mark, anchor);
    Attach(mark, node);
    return node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    RefuseTag(mark, tag);
    if (open_.size() >= kDepthMax) FailDepth(mark);
    Node* node = Make(mark, anchor);
    node->kind = kind;
    node->height = 1;
    node->complete = false;
    // Attached now, so that the children of a map stay in order; its size and height are added when it closes.
    if (!open_.empty()) Append(open_.back(), node);
    if (open_.empty()) tree_->root_ = node;
    open_.push_back(node);
    Count(mark, 1);
  }

  void Close() {
    Node* node = open_.back();
    open_.pop_back();
    node->complete = true;
    if (!open_.empty()) Grow(open_.back(), node);
  }

  // Adds a whole node (a leaf or an alias's target) to the innermost open container.
  void Attach(const YAML::Mark& mark, Node* node) {
    Count(mark, node->nodes);
    if (open_.size() + node->height > kDepthMax) FailDepth(mark);
    if (open_.empty()) {
      tree_->root_ = node;
      return;
    }
    Append(open_.back(), node);
    Grow(open_.back(), node);
  }

  // Keys and values of a map take turns.
  static void Append(Node* parent, Node* child) {
    if (parent->kind == Node::Kind::kMap && parent->items.size() % 2 == 0) child->key = true;
    parent->items.push_back(child);
  }

  static void Grow(Node* parent, const Node* child) {
    parent->nodes += child->nodes;
    parent->height = std::max(parent->height, child->height + 1);
  }

  void Count(const YAML::Mark& mark, size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kNodesMax) Fail(mark, "more than " + std::to_string(kNodesMax) + " values, aliases written out");
  }

  [[noreturn]] static void FailDepth(const YAML::Mark& mark) {
    Fail(mark, "nested deeper than " + std::to_string(kDepthMax) + " levels");
  }

  YamlTree* tree_;
  std::vector<Node*> open_;
  std::vector<Node*> anchors_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

bool YamlTree::Build(std::string_view yaml, const std::string& file, std::vector<ConfigError>* errors, size_t order) {
  const auto fail = [&](int line, int column, std::string message) {
    errors->push_back(ConfigError{file, line, column, "", std::move(message)});
    return false;
  };
  nodes_.clear();
  written_.clear();
  file_ = {file, order};
  root_ = &nodes_.emplace_back();
  nodes_[0].file = &file_;
  if (yaml.size() > kFileBytesMax) {
    return fail(0, 0, std::to_string(yaml.size()) + " bytes; at most 16MiB are allowed");
  }
  // The only place where exceptions are caught: yaml-cpp throws them, and so does the builder to leave its events.
  try {
    CheckCharacters(yaml);
    // yaml-cpp takes the end of the input for a quote left open and would swallow the rest of the file in
    // silence; a document end inside a quote is an error to it (YAML 1.2.2 9.1.2).
    std::istringstream stream(std::string(yaml) + "\n...\n");
    YAML::Parser parser(stream);
    Builder builder(this);
    while (parser.HandleNextDocument(builder)) {
    }
    if (root_->kind == Node::Kind::kNull) root_ = &nodes_[0];  // placed nowhere: the file as a whole is empty
    return true;
  } catch (const Stop& stop) {
    return fail(stop.line, stop.column, stop.message);
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) return fail(0, 0, "YAML: " + error.msg);
    int line = error.mark.line + 1, column = error.mark.column + 1;
    const std::string hint = HintOf(yaml, &line, &column);
    return fail(line, column, "YAML: " + error.msg + hint);
  } catch (const std::exception& error) {
    return fail(0, 0, std::string("YAML: ") + error.what());
  }
}

void YamlTree::ExpandAll(const Variables& variables, absl::FunctionRef<void(const Node&, std::string)> fail) {
  size_t bytes = 0;
  for (Node& node : nodes_) {
    if (node.kind != Node::Kind::kScalar || !HasVariables(node.text)) continue;
    std::string why;
    if (node.key) {
      why = "a variable in a key; only values may have one";
    } else if (bytes > kVariableBytesMax) {
      why = "the variables of this file come to more than 16MiB";
    } else if (auto text = Expand(node.text, variables); text.ok()) {
      bytes += text->size();
      node.written = &written_.emplace_back(std::move(node.text));
      node.text = std::move(*text);
      continue;
    } else {
      why = text.error().detail;
    }
    fail(node, std::move(why));
    node.wrong = true;
  }
}

const Node* ValueOf(const Node& map, std::string_view key) {
  for (size_t i = 0; map.kind == Node::Kind::kMap && i + 1 < map.items.size(); i += 2) {
    if (map.items[i]->kind == Node::Kind::kScalar && map.items[i]->text == key) return map.items[i + 1];
  }
  return nullptr;
}

}  // namespace sluice::config
