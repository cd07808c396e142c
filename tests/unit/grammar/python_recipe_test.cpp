#include <gtest/gtest.h>

#include <string>

#include "grammar/arguments/python_assignments.h"

namespace capstan {
namespace {

std::string python(std::string text, const std::string& run = {}) {
  SourceMap sources;
  const SourceId id = sources.add("recipe.py", std::move(text), SourceKind::file);
  SyntaxProblem problem;
  const auto recipe = parse_python_recipe(id, sources, run, problem);
  if (!recipe) return std::to_string(problem.where.begin) + " " + problem.message;
  std::string out;
  for (const PythonAssignment& assignment : recipe->assignments) {
    if (assignment.anew) continue;
    for (const std::string& part : assignment.path)
      out += (&part == &assignment.path.front() ? "" : ".") + part;
    const bool known = assignment.value.kind != SyntaxNode::Kind::unsupported;
    out += "=" + (known ? to_text(to_value(assignment.value)) : "?" + assignment.value.what) + "<" +
           std::string(sources.text(assignment.value.span)) + ">;";
  }
  for (const SyntaxProblem& repeated : recipe->repeated_keys)
    out += "twice " + std::string(sources.text(repeated.where)) + "@" + std::to_string(repeated.where.begin) +
           ";";
  for (const Span& call : recipe->changes) out += "changed by " + std::string(sources.text(call)) + ";";
  if (recipe->base.exists()) out += "base " + std::string(sources.text(recipe->base));
  for (const auto& function : recipe->further)
    out += "further " + function.function + (function.variable.empty() ? "" : ":" + function.variable) + "@" +
           std::string(sources.text(function.place)) + ";";
  return out;
}

TEST(PythonRecipe, ReadsLiterals) {
  EXPECT_EQ(python("cfg.model.a = 1\ncfg.model.b = -1.5e3  # c\ncfg.model.c = True\ncfg.model.d = "
                   "None\ncfg.model.e = 'x' \"y\"\n"),
            "model.a=1<1>;model.b=-1500.0<-1.5e3>;model.c=true<True>;model.d=none<None>;model.e=\"xy\"<'x' "
            "\"y\">;");
  EXPECT_EQ(python("cfg.m.a = [1, 'two', (3,), {'k': 4},]\ncfg.m.b = (\n  5,  # c\n  6)\ncfg.m.c = "
                   "1_000\ncfg.m.d = 0x10\n"),
            "m.a=[1, \"two\", [3], { k = 4 }]<[1, 'two', (3,), {'k': 4},]>;m.b=[5, 6]<(\n  5,  # c\n  "
            "6)>;m.c=1000<1_000>;m.d=16<0x10>;");
  EXPECT_EQ(python("cfg.m.a = r'\\n'\ncfg.m.b = '\\n\\x41\\u00e9'\ncfg.m.c = '''t\n'''\n"),
            "m.a=\"\\\\n\"<r'\\n'>;m.b=\"\\nA\xC3\xA9\"<'\\n\\x41\\u00e9'>;m.c=\"t\\n\"<'''t\n'''>;");
  EXPECT_EQ(python("cfg.m.a = torch.bfloat16\ncfg.m.b = AttnBackend.flash\ncfg.m.c = F.silu\n"),
            "m.a=\"bf16\"<torch.bfloat16>;m.b=\"flash\"<AttnBackend.flash>;m.c=\"F.silu\"<F.silu>;");
}

TEST(PythonRecipe, NamesKeysThatStandTwiceInADict) {
  EXPECT_EQ(
      python("cfg.m.a = {'k': 1, 'l': {'x': 2, 'x': 3}, 'k': 4}\n"),
      "m.a={ k = 4, l = { x = 3 } }<{'k': 1, 'l': {'x': 2, 'x': 3}, 'k': 4}>;twice 'x'@33;twice 'k'@42;");
  // Of a name that stands for a dict too, but not of one that is not used.
  EXPECT_EQ(python("D = {'k': 1, 'k': 2}\nE = {'k': 1, 'k': 2}\ncfg.m.a = cfg.m.b = D\n"),
            "m.a={ k = 2 }<{'k': 1, 'k': 2}>;m.b={ k = 2 }<{'k': 1, 'k': 2}>;twice 'k'@13;");
}

TEST(PythonRecipe, ReadsListsPutTogetherFromLists) {
  EXPECT_EQ(python("cfg.m.a = [0] * 2 + [1]\ncfg.m.b = [0] * n\n"),
            "m.a=[0, 0, 1]<[0] * 2 + [1]>;m.b=?an expression that is no literal<[0] * n>;");
  // Of integers only.
  EXPECT_EQ(python("cfg.m.a = ['x'] + ['y']\n"), "m.a=?an expression that is no literal<['x'] + ['y']>;");
}

TEST(PythonRecipe, ReadsParenthesesInLinearTime) {
  // The deepest nesting that is read: two tries at each depth would take hours.
  const std::string open(31, '('), close(31, ')');
  EXPECT_EQ(python("cfg.m.a = " + open + "4" + close + "\n"), "m.a=4<4>;");
  EXPECT_EQ(python("cfg.m.a = ((1), (2,), ())\n"), "m.a=[1, [2], []]<((1), (2,), ())>;");
  EXPECT_EQ(python("cfg.m.a = (1 2)\n"),
            "13 two values stand side by side; an operator or a comma is missing");
}

TEST(PythonRecipe, ReadsElementsNamedByLiterals) {
  EXPECT_EQ(python("cfg['m']['a'] = 1\ncfg.m[ \"b\" ] = 2\n"), "m.a=1<1>;m.b=2<2>;");
  EXPECT_EQ(python("cfg.m.a[0] = 1\n"), "m.a=?an assignment to an element<1>;");
  // Any key may be meant: an assignment without a path.
  EXPECT_EQ(python("cfg.m.a = 1\ncfg[x].b = 2\ncfg.m[x] = 3\nsetattr(cfg, x, 4)\nother[x] = 5\n"),
            "m.a=1<1>;=?an assignment to an element<2>;=?an assignment to an element<3>;=?set under a name "
            "that is not known<4>;");
  // Assignments to elements of another variable do not make it the config.
  EXPECT_EQ(python("d[1] = 1\nd[2] = 2\ncfg.m.a = 3\n"), "m.a=3<3>;");
  EXPECT_EQ(python("cfg.m.a = 1\ndel cfg.m.a, cfg.m.b\n"),
            "m.a=1<1>;m.a=?it is deleted<cfg.m.a>;m.b=?it is deleted<cfg.m.b>;");
}

TEST(PythonRecipe, TakesVariablesOfTheProcess) {
  EXPECT_EQ(
      python("os.environ['A'] = 'x'\nos.environ['B'] = str(1)\nos.environ['C'] = 'y'\ncfg.m.a = 1\n"),
      "env_vars.A=\"x\"<'x'>;env_vars.B=?an expression that is no literal<str(1)>;env_vars.C=\"y\"<'y'>;"
      "m.a=1<1>;");
}

TEST(PythonRecipe, ListsCallsThatMayChangeTheConfig) {
  EXPECT_EQ(python("cfg.m.a = 1\nprepare(cfg, 2)\ntune(x=cfg.m)\ncfg.m.update(y)\n"),
            "m.a=1<1>;changed by prepare(cfg, 2);changed by tune(x=cfg.m);changed by cfg.m.update(y);");
  // These only read it, or concern another variable.
  EXPECT_EQ(python("def f():\n    cfg.m.a = 1\n    print(cfg)\n    pretrain(cfg)\n    other(x)\n    "
                   "log.info(cfg.m.a)\n    return (cfg)\ndef g():\n    prepare(cfg)\n"),
            "m.a=1<1>;");
}

TEST(PythonRecipe, AParameterIsABaseToo) {
  EXPECT_EQ(python("def f(x: int, cfg: C = None):\n    cfg.m.a = 1\n"), "m.a=1<1>;base cfg");
  EXPECT_EQ(python("def f(x):\n    cfg.m.a = 1\ndef g(cfg):\n    pass\n"), "m.a=1<1>;");
}

TEST(PythonRecipe, ByteOrderMarksHideNothing) {
  EXPECT_EQ(python("\xEF\xBB\xBF"
                   "cfg.m.a = 1\r\ncfg.m.b = 2\r\n"),
            "m.a=1<1>;m.b=2<2>;");
  EXPECT_EQ(python("cfg.m.a = \\\r\n  1\r\ncfg.m.b = 2\r\n"), "m.a=1<1>;m.b=2<2>;");
}

TEST(PythonRecipe, SaysWhatIsNoLiteral) {
  EXPECT_EQ(python("cfg = base_config()\ncfg.m.a = 2 * 4\ncfg.m.b = f(x)\ncfg.m.c += 1\ncfg.m.d['k'] = 1\nif "
                   "x:\n    cfg.m.e = 1\ncfg.m.f = 2\n"),
            "m.a=?an expression that is no literal<2 * 4>;m.b=?an expression that is no "
            "literal<f(x)>;m.c=?an augmented assignment<1>;"
            "m.d.k=1<1>;m.e=?a value set under a condition or in a "
            "loop<1>;m.f=2<2>;base base_config()");
  EXPECT_EQ(python("cfg.m.a = 99999999999999999999\n"),
            "m.a=?an expression that is no literal<99999999999999999999>;");
  EXPECT_EQ(python("def f() -> C:\n    \"\"\"cfg.m.a = 1\"\"\"\n    cfg.m.b = 1\n    return cfg\nother.x.y = "
                   "3\ncfg.m.c = 4\n"),
            "m.b=1<1>;m.c=4<4>;further :other@other.x.y;");
}

TEST(PythonRecipe, ReadsOtherWaysToAssign) {
  EXPECT_EQ(python("cfg.m.a = 1; cfg.m.b = 2\n"), "m.a=1<1>;m.b=2<2>;");
  EXPECT_EQ(python("cfg.m.a = cfg.m.b = 8\n"), "m.a=8<8>;m.b=8<8>;");
  EXPECT_EQ(python("cfg.m.a: str = 'x'\n"), "m.a=\"x\"<'x'>;");
  EXPECT_EQ(
      python("cfg.m.a, cfg.m.b = 1, (2)\n(cfg.m.c, cfg.m.d) = f()\n"),
      "m.a=1<1>;m.b=2<2>;m.c=?a part of a value that is no literal<f()>;m.d=?a part of a value that is no "
      "literal<f()>;");
  EXPECT_EQ(python("cfg.m.a = (\n    'x'\n)\n"), "m.a=\"x\"<'x'>;");
  EXPECT_EQ(python("setattr(cfg.m, 'a', 3)\nsetattr(cfg.m, name, 3)\n"),
            "m.a=3<3>;m=?set under a name that is not known<3>;");
  EXPECT_EQ(python("if x: cfg.m.a = 1\nelse: cfg.m.a = 2\ncfg.m.b = 3\n"),
            "m.a=?a value set under a condition or in a loop<1>;m.a=?a value set under a condition or in a "
            "loop<2>;m.b=3<3>;");
  // What stands behind a `;` belongs to the same condition or function as what stands before it.
  EXPECT_EQ(python("if x: cfg.m.a = 1; cfg.m.b = 2; cfg.m.c = 3\ncfg.m.d = 4; cfg.m.e = 5\n"),
            "m.a=?a value set under a condition or in a loop<1>;m.b=?a value set under a condition or in a "
            "loop<2>;m.c=?a value set under a condition or in a loop<3>;m.d=4<4>;m.e=5<5>;");
  EXPECT_EQ(python("if x:\n    cfg.m.a = 1; cfg.m.b = 2\ncfg.m.c = 3\n"),
            "m.a=?a value set under a condition or in a loop<1>;m.b=?a value set under a condition or in a "
            "loop<2>;m.c=3<3>;");
  EXPECT_EQ(python("def f(): cfg.m.a = 1; cfg.m.b = 2\ndef g(): cfg.m.a = 3; cfg.m.b = 4\n", "g"),
            "m.a=3<3>;m.b=4<4>;further f@f;");
  EXPECT_EQ(python("if x: N = 1; K = 2\ncfg.m.a = K\n"), "m.a=?an expression that is no literal<K>;");
  EXPECT_EQ(python("cfg.m.a = x == y\ncfg.m.b = lambda x=1: x\n"),
            "m.a=?an expression that is no literal<x == y>;m.b=?an expression that is no literal<1: x>;");
}

TEST(PythonRecipe, ReadsArgumentsOfConstructors) {
  EXPECT_EQ(python("cfg.ddp = DDP(overlap=True, buckets=2 * n)\n"),
            "ddp.overlap=true<True>;ddp.buckets=?an expression that is no literal<2 * n>;");
  EXPECT_EQ(
      python(
          "def f():\n    cfg = Container(\n        train=Train(iters=5,  # c)\n                    x=')'),\n "
          "       model=make(),\n    )\n    cfg.m.a = 1\n"),
      "train.iters=5<5>;train.x=\")\"<')'>;model=?an expression that is no literal<make()>;m.a=1<1>;base "
      "Container(\n        train=Train(iters=5,  # c)\n                    x=')'),\n        model=make(),\n "
      "   )");
}

TEST(PythonRecipe, FollowsNamesThatAreAssignedOnce) {
  EXPECT_EQ(python("SEQ = 4096\ncfg.m.a = SEQ\n"), "m.a=4096<4096>;");
  EXPECT_EQ(python("SEQ = 4096\nSEQ = 8\ncfg.m.a = SEQ\n"), "m.a=?an expression that is no literal<SEQ>;");
  EXPECT_EQ(python("cfg.m.a = SEQ\n"), "m.a=?an expression that is no literal<SEQ>;");
  EXPECT_EQ(python("if x:\n    SEQ = 1\ncfg.m.a = SEQ\n"), "m.a=?an expression that is no literal<SEQ>;");
  EXPECT_EQ(python("n = 1\ndef f(n):\n    cfg.m.a = n\n"), "m.a=?an expression that is no literal<n>;");
}

TEST(PythonRecipe, FollowsNamesOfSections) {
  EXPECT_EQ(python("m = cfg.model\nm.x = 1\nc = cfg\nc.ddp.y = 2\nd = c.ddp\nd.z = 3\nsetattr(m, 'w', 4)\n"),
            "model.x=1<1>;ddp.y=2<2>;ddp.z=3<3>;model.w=4<4>;");
  // Assigned again, deleted, or the section is another object: the name is no part of the config any more.
  EXPECT_EQ(python("m = cfg.model\nm.x = 1\nm = other\nm.x = 2\nm = cfg.ddp\ndel m\nm.y = 3\n"),
            "model.x=1<1>;");
  EXPECT_EQ(python("m = cfg.model\nm.x = 1\ncfg.model = f()\nm.x = 2\n"),
            "model.x=1<1>;model=?an expression that is no literal<f()>;");
  EXPECT_EQ(python("m = cfg.model\ncfg.model = m\nm.x = 2\n"), "model.x=2<2>;");
  // A name that becomes a section.
  EXPECT_EQ(python("cfg.a.b = 0\nm = f()\nm.x = 1\ncfg.model = m\nm.y = 2\n"),
            "a.b=0<0>;model=?an expression that is no literal<m>;model.y=2<2>;");
  EXPECT_EQ(python("m = cfg.model\nif x:\n    m = cfg.ddp\nm.y = 1\ncfg.model.a = 2\n"),
            "=?set by a name that is given under a condition<1>;model.a=2<2>;");
  EXPECT_EQ(python("if x:\n    m = cfg.model\nm.y = 1\n"),
            "model.y=?set by a name that is given under a condition<1>;");
  EXPECT_EQ(python("cfg.a.b = 1\nfor m in (cfg.model, cfg.ddp):\n    m.y = 1\n"),
            "a.b=1<1>;=?a value set under a condition or in a loop<1>;");
  // Parameters and names of other functions are others.
  EXPECT_EQ(python("m = cfg.model\ncfg.a.b = 1\ndef f(m):\n    m.x = 1\n"), "a.b=1<1>;");
  EXPECT_EQ(python("def f():\n    m = cfg.model\n    m.x = 1\ndef g():\n    m.x = 2\n"), "model.x=1<1>;");
  EXPECT_EQ(python("m = cfg.model\nm.x = 1\ntune(m)\ny = tune(cfg)\nz = Trainer(cfg)\n"),
            "model.x=1<1>;changed by tune(m);changed by tune(cfg);");
}

TEST(PythonRecipe, SaysOddTargets) {
  const std::string odd = "=?its target is no plain path<1>;";
  for (const char* const target : {"vars(cfg)['x']", "cfg.model.__dict__()['x']", "f(cfg.model).x",
                                   "(cfg).model.x", "cfg.model .x", "getattr(cfg, 'model').x"})
    EXPECT_EQ(python("cfg.a.b = 2\n" + std::string(target) + " = 1\n"), "a.b=2<2>;" + odd) << target;
  EXPECT_EQ(python("*cfg.m.a, b = 1, 2\n"), "m.a=?a part of a value that is no literal<1>;");
  EXPECT_EQ(python("cfg.m.a: 3\n"), "m.a=?`:` states a type and sets nothing; an `=` is missing<3>;");
  EXPECT_EQ(python("setattr(f(cfg), 'x', 1)\ncfg.a.b = 2\n"), odd + "a.b=2<2>;");
}

TEST(PythonRecipe, TakesNoValueForAKeyThatIsNotKnown) {
  SourceMap sources;
  const SourceId id =
      sources.add("r.py", "cfg.a.b = 1\ncfg[name] = 2\ncfg.a[name] = 3\nf(cfg).x = 4\n", SourceKind::file);
  SyntaxProblem problem;
  const auto recipe = parse_python_recipe(id, sources, {}, problem);
  ASSERT_TRUE(recipe);
  ASSERT_EQ(recipe->assignments.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_TRUE(recipe->assignments[i].path.empty()) << i;
    EXPECT_EQ(recipe->assignments[i].value.kind, SyntaxNode::Kind::unsupported) << i;
  }
}

TEST(PythonRecipe, ASectionMadeAnewForgetsWhatWasSet) {
  SourceMap sources;
  const SourceId id =
      sources.add("r.py", "cfg.ddp.x = 1\ncfg.ddp = DDP(y=2)\ncfg.ddp = DDP()\n", SourceKind::file);
  SyntaxProblem problem;
  const auto recipe = parse_python_recipe(id, sources, {}, problem);
  ASSERT_TRUE(recipe);
  std::string order;
  for (const PythonAssignment& assignment : recipe->assignments)
    order += assignment.path.back() + (assignment.anew ? "! " : " ");
  EXPECT_EQ(order, "x ddp! y ddp! ");
}

TEST(PythonRecipe, RefusesWhatIsNoPython) {
  const auto fault = [](const std::string& line) { return python("cfg.a.b = 1\n" + line + "\n"); };
  EXPECT_EQ(fault("cfg.a.c = = 3"), "22 a target is missing in front of this `=`");
  EXPECT_EQ(fault("cfg.a.c ="), "20 a value is missing behind this `=`");
  EXPECT_EQ(fault("cfg.a.c = 4 +"), "24 `+` lacks a value behind it");
  EXPECT_EQ(fault("cfg.a.c = / 4"), "22 `/` lacks a value in front of it");
  EXPECT_EQ(fault("cfg.a.c = 3 4"), "24 two values stand side by side; an operator or a comma is missing");
  EXPECT_EQ(fault("cfg.a.c = 'x' y"), "26 two values stand side by side; an operator or a comma is missing");
  EXPECT_EQ(fault("cfg.a.c = [1,, 2]"), "25 a value is missing in front of the comma");
  EXPECT_EQ(fault("cfg.a.c = [1, 2)"), "27 this bracket closes one of another kind");
  EXPECT_EQ(fault("cfg.a.c = 010"), "22 `010` is no number of Python");
  EXPECT_EQ(fault("cfg.a.c = 1__0"), "22 `1__0` is no number of Python");
  EXPECT_EQ(fault("cfg.a.c = 12abc"), "22 `12abc` is no number of Python");
  EXPECT_EQ(fault("cfg.a.c = $X"), "22 `$` has no meaning in Python");
  EXPECT_EQ(fault("cfg.a.c = x."), "23 a name is missing behind the dot");
  EXPECT_EQ(fault("cfg.a. = 3"), "17 a name is missing behind the dot");
  EXPECT_EQ(fault("cfg..a = 3"), "15 a name is missing behind the dot");
  EXPECT_EQ(fault("cfg.a.b-c = 3"), "19 this cannot be assigned to");
  for (const char* const target : {"!cfg", "$cfg.a.c", "?x", "3", "-cfg.a.c", ".c", "@cfg", "%x"})
    EXPECT_EQ(fault(std::string(target) + " = y()"), "12 this cannot be assigned to") << target;
  EXPECT_EQ(fault("x = !cfg = 3"), "16 this cannot be assigned to");
  EXPECT_EQ(fault("cfg.a.c 3"), "20 an `=` is missing in front of this");
  EXPECT_EQ(fault("cfg.a.c := 3"), "20 `:=` assigns to plain names only; needs `=`");
  // Python that only looks odd.
  for (const char* const line : {"x = 1if y else 2",
                                 "f = lambda x=1, *, y=2: x",
                                 "a, *b = c",
                                 "x = [*a, *b]",
                                 "x = {**a, 'k': -1}",
                                 "x = y[1:, ..., ::2]",
                                 "x: Dict[str, int] = {}",
                                 "x = f'{y}' rb'z' if y in (1,) else not z",
                                 "x = a @ b // c ** -d",
                                 "x = (yield)",
                                 "type X = int",
                                 "x = 1_000j + 0x_F + 1e-5 + .5 + 5. + 00 + 0e0",
                                 "x = y = z == 3",
                                 "x[f(1)] = 2",
                                 "x = await f(a, b=c)",
                                 "assert x == 3, 'y'",
                                 "x = (y := 3)",
                                 "x = a.b.c[0].d()",
                                 "x += 1",
                                 "x //= 2",
                                 "x >>= 3",
                                 "x = \\\n  3",
                                 "x = [  # c\n  1,  # d\n]",
                                 "@f(x=1)",
                                 "x = '%s' % y",
                                 "x = a < b <= c != d",
                                 "\xC3\xA9 = 1",
                                 "(x) = 1",
                                 "[x, y] = 1, 2",
                                 "{}['x'] = 1",
                                 "''.x = 1",
                                 "!pip install x==1",
                                 "x = ~a | b ^ c & d"})
    EXPECT_EQ(fault(line), "a.b=1<1>;") << line;
}

TEST(PythonRecipe, ReadsEscapes) {
  EXPECT_EQ(python("cfg.m.a = '\\101\\0\\a'\n"), "m.a=\"A\\u0000\\u0007\"<'\\101\\0\\a'>;");
}

TEST(PythonRecipe, TellsSeveralRecipesApart) {
  const char* const text = "def a():\n    cfg.m.x = 1\ndef b():\n    cfg.m.x = 2\n";
  EXPECT_EQ(python(text), "m.x=1<1>;further b@b;");
  EXPECT_EQ(python(text, "b"), "m.x=2<2>;further a@a;");
  EXPECT_EQ(python(text, "c"), "0 no function `c` assigns to a config here; `a`, `b` do");
}

TEST(PythonRecipe, TheConfigIsWhatIsReturned) {
  const char* const text =
      "def f():\n    base = C()\n    base.m.a = 1\n    base.m.b = 2\n    cfg = C()\n    cfg.m.x = 3\n    "
      "return cfg\n";
  EXPECT_EQ(python(text), "m.x=3<3>;base C()further f:base@base.m.a;");
  EXPECT_EQ(python(text, "f"), "m.x=3<3>;base C()further f:base@base.m.a;");
  // Of several returns the last that always comes; without any, what most assignments use.
  EXPECT_EQ(python("def f():\n    a.m.x = 1\n    b.m.x = 2\n    if c:\n        return b\n    return a\n"),
            "m.x=1<1>;further f:b@b.m.x;");
  EXPECT_EQ(python("def f():\n    a.m.x = 1\n    b.m.x = 2\n    b.m.y = 3\n"),
            "m.x=2<2>;m.y=3<3>;further f:a@a.m.x;");
  EXPECT_EQ(python("def f():\n    a.m.x = 1\n    b = a\n    b.m.y = 2\n    return b\n"),
            "m.x=1<1>;m.y=2<2>;");
  EXPECT_EQ(python("def f():\n    a.m.x = 1\n    return finish(a)\n"), "m.x=1<1>;changed by finish(a);");
  // A helper with more assignments is not the recipe.
  EXPECT_EQ(python("def tune(m):\n    m.s.a = 1\n    m.s.b = 2\ndef f():\n    cfg.m.x = 3\n    return cfg\n"),
            "m.x=3<3>;further tune@tune;");
  // Functions may name it differently.
  const char* const two = "def f():\n    a.m.x = 1\n    return a\ndef g():\n    b.m.y = 2\n    return b\n";
  EXPECT_EQ(python(two, "g"), "m.y=2<2>;further f@f;");
}

TEST(PythonRecipe, NothingCountsBehindAReturn) {
  EXPECT_EQ(python("def f():\n    cfg.m.x = 1\n    return cfg\n    cfg.m.x = 2\n    prepare(cfg)\n"),
            "m.x=1<1>;");
  EXPECT_EQ(python("def f():\n    cfg.m.x = 1\n    return cfg; cfg.m.x = 2\n"), "m.x=1<1>;");
  EXPECT_EQ(python("def f():\n    cfg.m.x = 1\n    raise E\n    cfg.m.x = 2\n"), "m.x=1<1>;");
  EXPECT_EQ(
      python("def f():\n    cfg.m.x = 1\n    return cfg\n    for i in x:\n        cfg.m.x = 2\n    def g():\n"
             "        cfg.m.y = 2\n    return other\n"),
      "m.x=1<1>;");
  // A return under a condition, or of another function, ends nothing here.
  EXPECT_EQ(python("def f():\n    if c:\n        return cfg\n    cfg.m.x = 1\n    return cfg\n"),
            "m.x=1<1>;");
  EXPECT_EQ(python("def f():\n    if c: return cfg\n    cfg.m.x = 1\n    return cfg\n"), "m.x=1<1>;");
  EXPECT_EQ(
      python("def f():\n    def g():\n        return 1\n    cfg.m.x = 1\n    return cfg\ncfg.m.y = 2\n"),
      "m.x=1<1>;m.y=2<2>;");
}

TEST(PythonRecipe, NamesAFurtherFunctionOnce) {
  EXPECT_EQ(python("def f():\n    cfg.m.x = 1\n    return cfg\n"
                   "def g():\n    a.m.x = 1\n    b.m.x = 2\n    return b\n",
                   "f"),
            "m.x=1<1>;further g@g;");
}

TEST(PythonRecipe, AConfigMayBeMadeWhereItIsReturned) {
  EXPECT_EQ(python("def f():\n    return C(m=M(x=1), t=T(y=2))\n"),
            "m.x=1<1>;t.y=2<2>;base C(m=M(x=1), t=T(y=2))");
  EXPECT_EQ(python("def f():\n    cfg.m.x = 1\n    return (cfg)\n"), "m.x=1<1>;");
}

TEST(PythonRecipe, TakesBytesOfLettersAsTheyAre) {
  EXPECT_EQ(python("cfg.m.a = \xE8\xE8\n"), "m.a=?an expression that is no literal<\xE8\xE8>;");
  EXPECT_EQ(python("cfg.m.a = x\xFF\n"), "m.a=?an expression that is no literal<x\xFF>;");
  EXPECT_EQ(python("cfg.m.a = '\xC3\xA9'\n"), "m.a=\"\xC3\xA9\"<'\xC3\xA9'>;");
}

TEST(PythonRecipe, ReportsUnclosedThings) {
  EXPECT_EQ(python("cfg.m.a = 'x\n"), "10 the string is not closed");
  EXPECT_EQ(python("cfg.m.a = [1,\n"), "10 this bracket is not closed");
  EXPECT_EQ(python("cfg.m.a = 1)\n"), "11 this bracket was not opened");
  EXPECT_EQ(python("cfg.m.a = " + std::string(2000, '[')), "1010 brackets are nested too deeply");
  EXPECT_EQ(python("cfg.m.a = " + std::string(100, '[') + std::string(100, ']')).substr(0, 31),
            "m.a=?a value nested too deeply<");
}

}  // namespace
}  // namespace capstan
