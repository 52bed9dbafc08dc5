/**
 * Text of strangers as it may be shown: bounded, and without characters that cannot be seen or that
 * reorder the text around them, such as U+202E, which lets one number look like another.
 */

const MAX_LENGTH = 200

/**
 * Controls, formats (bidirectional controls of UAX #9, zero-width characters, tags), lone
 * surrogates, separators of lines, variation selectors, and the letters that have no shape.
 */
const invisible = new RegExp(
  String.raw`\p{Cc}|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}|\p{Variation_Selector}` +
    String.raw`|\u{34f}|\u{115f}|\u{1160}|\u{3164}|\u{ffa0}`,
  'gu',
)

export function visibleText(text: string, maxLength = MAX_LENGTH): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replace(invisible, codeOf)
}

/** The same for text of several lines. */
export const visibleLines = (text: string, maxLength: number): string =>
  text
    .slice(0, maxLength)
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => visibleText(line, maxLength))
    .join('\n')

/** `<U+202E>` */
const codeOf = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`
