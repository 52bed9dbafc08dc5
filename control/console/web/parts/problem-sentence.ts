/** Turns what the API says of a field into a sentence, which stands below the field. */

/** `must be at most 32`: It must be at most 32. */
export function problemSentence(message: string): string {
  for (const [pattern, words] of known) {
    const found = pattern.exec(message)
    if (found !== null) return words(...found.slice(1))
  }
  const isAboutIt = /^(?!in\b|no\b|of\b|at\b)[a-z]/.test(message)
  return ended(isAboutIt ? `It ${message}` : message)
}

type Words = (...parts: readonly string[]) => string

const known: readonly (readonly [RegExp, Words])[] = [
  [/^Invalid input: expected .+, received undefined$/, () => 'It is required.'],
  [/^Invalid input: expected (\w+)/, (kind = '') => `It must be ${kindText(kind)}.`],
  [/^Invalid option: expected one of (.+)$/, (all = '') => `It must be one of ${listed(all)}.`],
  [
    /^Too (small|big): expected \w+ to have ([<>])(=?)(\d+) (\w+)$/,
    (_, sign = '', equal = '', count = '', unit = '') =>
      `It must have ${boundText(sign, equal)} ${counted(count, unit)}.`,
  ],
  [
    /^Too (small|big): expected \w+ to be ([<>])(=?)(\S+)$/,
    (_, sign = '', equal = '', bound = '') => `It must be ${boundText(sign, equal)} ${bound}.`,
  ],
  [/^Invalid string: must match pattern/, () => 'It has a form that is not allowed.'],
  [/^Invalid (.+)$/, (what = '') => `It is not a valid ${what}.`],
  [/^Unknown field(.*)$/s, (rest = '') => ended(`There is no such field${rest}`)],
]

const counted = (count: string, units: string): string =>
  `${count} ${count === '1' ? units.replace(/s$/, '') : units}`

const boundText = (sign: string, equal: string): string =>
  sign === '>' ? (equal === '' ? 'more than' : 'at least') : equal === '' ? 'less than' : 'at most'

const kinds: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'yes or no',
  array: 'a list',
  object: 'a group of fields',
}

const kindText = (kind: string): string => kinds[kind] ?? `a ${kind}`

/** `"a"|"b"`: a, b */
const listed = (all: string): string => all.replaceAll('"', '').split('|').join(', ')

const ended = (text: string): string => {
  const whole = text.trim()
  const sentence = whole.charAt(0).toUpperCase() + whole.slice(1)
  return /[.?!]$/.test(sentence) ? sentence : `${sentence}.`
}
