"""What other files can see of a file, and so which files an edit may have broken. Pure.

**In which direction this errs.** It over-approximates: a file that an edit breaks is among those named, and some are
named that it leaves alone. A member is a word, not a binding: two methods called `get` are one. A name at the top of a
module is a binding: whoever neither imports it nor has the module cannot see it. Nothing decides *not* to look by
words, brackets or regular expressions; what cannot be parsed is one symbol, changed as a whole.

The unit is the symbol: a name at the top of a module, a member of a class, an attribute that a method stores. Of each
it is known what others can see of it (`python`): the annotations where there are any; where the type is inferred, all
that it is inferred from, which for a function without a declared result is its body. An edit changes the symbols whose
visible part differs. From there it spreads (`spread`) along imports alone (`imports`): a symbol whose visible part
mentions a changed one is changed, in whichever file that imports it, directly or through others that stay as they are.
A file that mentions a changed symbol and can see it through its imports may be affected. A shape that did not change
affects nobody, and neither does a file that nobody imports: that is proven, not guessed.

What nobody mentions and a checker looks up all the same is a change of the class itself: methods with two underscores,
abstract methods, members that any protocol of the project or of the standard library asks for; and, unless all of its
bases are plain classes of the project (`plain`), its fields (dataclasses, enumerations, models), and members that come
or go. Where a function is called and nothing is made of its result, only whether it ever returns counts (`returning`).

What fools it, because no source below the root says it:
- a protocol of an installed package asks for a method of a class of the project, and only that method's type changes;
- a module is reached by another name than its path ends with: a link, an import hook, a mapping of a build tool;
- the type of an object changes, and so a method that it is called by, in a function without a result, never returns;
- a call that never returns makes code unreachable, and stands inside an assignment at the top of a module;
- a plug-in of a checker that reads more than types.
"""
