/** All the ways to write one telephone number, and what only looks like one. */
import fc from 'fast-check'

const digits = '0123456789'

/** A number in the normal form. */
export const telephoneNumber = fc
  .tuple(
    fc.constantFrom('', '+'),
    fc.constantFrom('1900', '1976', '1809', '1', '49', '*', '112', ''),
    fc.string({ unit: fc.constantFrom(...digits.split('')), minLength: 1, maxLength: 12 }),
  )
  .map((parts) => parts.join(''))

const separator = fc.constantFrom('-', '.', '(', ')', ' ', '--', ') ', '')

/** Spellings of a number in plain text, as a person writes them. */
export const spellings = (number: string): fc.Arbitrary<string> =>
  woven(
    number.split('').map((character) => fc.constant(character)),
    separator,
  )

/** As user part of a SIP URI: separators, escapes, and parameters of a telephone number. */
export const escapedSpellings = (number: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      woven(
        number.split('').map((character) => fc.constantFrom(...writtenAs(character))),
        fc.constantFrom('-', '.', '(', ')', '%20', '%2D', '%2e', '%28', '%29', '%20-', '', ''),
      ),
      fc.constantFrom('', '', ...parameters),
    )
    .map((parts) => parts.join(''))

const parameters = [
  ';phone-context=+44',
  ';phone-context=example.com',
  ';npdi;rn=+15550100',
  ';isub=7',
  ';ext=99',
  ';cic=+1-6789',
]

function writtenAs(character: string): string[] {
  const code = character.charCodeAt(0).toString(16)
  const escapes = [`%${code}`, `%${code.toUpperCase()}`]
  return character === '#' ? escapes : [character, character, ...escapes]
}

function woven(
  characters: readonly fc.Arbitrary<string>[],
  between: fc.Arbitrary<string>,
): fc.Arbitrary<string> {
  return fc
    .tuple(between, ...characters.flatMap((character) => [character, between]))
    .map((parts) => parts.join(''))
}

/** A number with something in it that is no part of any: never to be taken for another number. */
export const disfigured = (number: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.nat(number.length),
      fc.constantFrom(
        '%2B%2B',
        '%09',
        '%00',
        '%0D%0A',
        '%25',
        '%2C',
        '%3B',
        '%2F',
        '%EF%BC%91',
        '%D9%A1',
        '%C2%A0',
        '%E2%80%90',
        '%E2%80%8B',
        ',',
        '/',
        '&',
        '=',
        '$',
        '!',
        '~',
        "'",
        '_',
        'x',
        '%78',
      ),
    )
    .map(([at, what]) => number.slice(0, at) + what + number.slice(at))
