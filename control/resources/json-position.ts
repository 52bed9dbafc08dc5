/** Finds where a text stops being JSON (RFC 8259). `JSON.parse` does not always say. */

export interface JsonProblem {
  /** Starts at 1. */
  readonly line: number
  readonly column: number
  readonly message: string
}

/** Returns the first problem of a text that `JSON.parse` rejects. Bounded: reads each character once. */
export function jsonProblem(text: string): JsonProblem {
  const { at, message } = firstProblem(text)
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return { line, column: at - (before.lastIndexOf('\n') + 1) + 1, message }
}

const space = /[ \t\n\r]*/y
const scalar = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
// eslint-disable-next-line no-control-regex -- these may not stand in a string
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y

/** What the grammar allows next. */
type Expected =
  | 'a value'
  | 'a value or ]'
  | 'a name in quotes'
  | 'a name in quotes or }'
  | ':'
  | ', or ]'
  | ', or }'

function firstProblem(text: string): { readonly at: number; readonly message: string } {
  const open: ('[' | '{')[] = []
  let at = 0
  let expected: Expected = 'a value'
  const took = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.test(text)
    if (found) at = pattern.lastIndex
    return found
  }
  const afterValue = (): Expected => (open.at(-1) === '[' ? ', or ]' : ', or }')
  for (;;) {
    took(space)
    const character = text[at]
    if (character === undefined) return { at, message: `ends where ${expected} is expected` }
    const closing = open.at(-1) === '[' ? ']' : '}'
    if (character === closing && expected.endsWith(closing)) {
      at += 1
      open.pop()
      expected = afterValue()
    } else if (expected === ':' && character === ':') {
      at += 1
      expected = 'a value'
    } else if (expected.startsWith(',') && character === ',') {
      at += 1
      expected = open.at(-1) === '[' ? 'a value' : 'a name in quotes'
    } else if (expected.startsWith('a name') && took(string)) {
      expected = ':'
    } else if (expected.startsWith('a value') && (character === '[' || character === '{')) {
      at += 1
      open.push(character)
      expected = character === '[' ? 'a value or ]' : 'a name in quotes or }'
    } else if (expected.startsWith('a value') && (took(string) || took(scalar))) {
      expected = afterValue()
    } else return { at, message: problemAt(text, at, expected) }
    if (open.length > 0) continue
    took(space)
    return { at, message: 'has extra characters after its end' }
  }
}

function problemAt(text: string, at: number, expected: Expected): string {
  const character = text[at] ?? ''
  if (character === '"') {
    const end = /[\n\r]/.exec(text.slice(at, at + 2_000))
    return end === null
      ? 'has a text that is not well formed'
      : 'has a text that does not end in its line'
  }
  return `has ${JSON.stringify(character)} where ${expected} is expected`
}
