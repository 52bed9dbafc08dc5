/** Words of a command line, as options in their order. Pure. */
import { OptionError } from '../errors.ts'
import { type OptionName, optionRows, type OptionRow } from './option-table.ts'

export interface CommandLineOption {
  readonly name: OptionName
  /** Spelling of the option on the command line, such as `--port`. */
  readonly spelled: string
  /** An option that takes no value has 'true'. */
  readonly text: string
}

interface KnownOption {
  readonly name: OptionName
  readonly row: OptionRow<unknown>
}

/** All forms of it on a command line. */
const spellingsOf = ({ option, alias, short }: OptionRow<unknown>): readonly string[] => [
  ...(short === undefined ? [] : [`-${short}`]),
  ...(option === undefined ? [] : [`--${option}`]),
  ...(alias === undefined ? [] : [`--${alias}`]),
]

const bySpelling = new Map<string, KnownOption>(
  optionRows.flatMap(([name, row]) =>
    spellingsOf(row).map((spelling) => [spelling, { name, row }] as const),
  ),
)

/**
 * `--name value`, `--name=value`, `-n value`, `-nvalue`.
 * @throws OptionError
 */
export function readCommandLine(words: readonly string[]): readonly CommandLineOption[] {
  const given: CommandLineOption[] = []
  for (let next = 0; next < words.length; next += 1) {
    const { spelled, attached } = split(words[next] ?? '')
    const known = bySpelling.get(spelled)
    if (known === undefined)
      throw new OptionError(
        spelled.startsWith('-') ? `Unknown option '${spelled}'` : `does not take "${spelled}"`,
      )
    const { name, row } = known
    if (row.value === undefined) {
      if (attached !== undefined) throw new OptionError(`${spelled} takes no value`)
      given.push({ name, spelled, text: 'true' })
      continue
    }
    const text = attached ?? words[(next += 1)]
    if (text === undefined || text === '') throw new OptionError(`${spelled} needs ${row.value}`)
    given.push({ name, spelled, text })
  }
  return given
}

function split(word: string): { readonly spelled: string; readonly attached?: string } {
  const equals = word.indexOf('=')
  if (word.startsWith('--'))
    return equals === -1
      ? { spelled: word }
      : { spelled: word.slice(0, equals), attached: word.slice(equals + 1) }
  if (word.length > 2 && word.startsWith('-'))
    return { spelled: word.slice(0, 2), attached: word.slice(2) }
  return { spelled: word }
}

/** How an option is spelled in all its forms on the command line. */
const spellingOf = (row: OptionRow<unknown>): string =>
  [spellingsOf(row).join(', '), row.option === undefined ? '' : (row.value ?? '')].join(' ').trim()

/** Lines of options, and of what only the environment or the file can say. */
export function optionHelp(): readonly string[] {
  const taken = optionRows.map(([, row]) => row).filter((row) => row.refused === undefined)
  const named = taken.filter(({ option }) => option !== undefined)
  const others = taken.filter(({ option }) => option === undefined)
  return [
    'Options:',
    ...named.map((row) => `  ${spellingOf(row)}\n      ${explain(row)}`),
    '',
    'Only in the environment or in the file:',
    ...others.map((row) => `  ${sourcesOf(row)}\n      ${explain(row)}`),
    '',
    'The command line goes before the environment, and that before the file.',
  ]
}

function explain(row: OptionRow<unknown>): string {
  const sources = row.option === undefined ? '' : sourcesOf(row)
  return row.meaning + (sources === '' ? '' : `\n      ${sources}`)
}

const sourcesOf = ({ environment = [], xml = [] }: OptionRow<unknown>): string =>
  [...environment, ...xml.map((path) => `<${path.replace('@', ' ')}>`)].join(', ')
