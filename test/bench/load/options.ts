/**
 * The words behind the name of a bench, `rate=300`: what is given, and otherwise what `usual` says.
 */
export function optionsOf<Name extends string>(
  words: readonly string[],
  usual: Readonly<Record<Name, string>>,
): Record<Name, string> {
  // A value, such as a URL, may have more of them.
  const given = words
    .map((word) => [word.split('=', 1)[0] ?? '', word.slice(word.indexOf('=') + 1)] as const)
    .filter(([name]) => name in usual)
  return { ...usual, ...(Object.fromEntries(given) as Partial<Record<Name, string>>) }
}

/** The same of numbers. */
export function numbersOf<Name extends string>(
  words: readonly string[],
  usual: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const given = words.map((word) => word.split('=')).filter(([name = '']) => name in usual)
  const numbers = given.map(([name = '', text]) => [name, Number(text)] as const)
  return { ...usual, ...(Object.fromEntries(numbers) as Partial<Record<Name, number>>) }
}
