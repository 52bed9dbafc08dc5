/** The option table as texts: `--help`, and the table of the README. Pure. */
import { spellingsOf } from './command-line.ts'
import { optionRows, type Row } from './option-table.ts'

/** How an option is spelled in all its forms on the command line. */
const spellingOf = (row: Row<unknown>): string =>
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

function explain(row: Row<unknown>): string {
  const sources = row.option === undefined ? '' : sourcesOf(row)
  return row.meaning + (sources === '' ? '' : `\n      ${sources}`)
}

const sourcesOf = ({ environment = [], xml = [] }: Row<unknown>): string =>
  [...environment, ...xml.map((path) => `<${path.replace('@', ' ')}>`)].join(', ')

/** Rows of a Markdown table. */
export const optionMarkdown = (): readonly string[] => [
  '| command line | environment | file | what |',
  '| --- | --- | --- | --- |',
  ...optionRows.map(([, row]) => {
    const code = (text: string): string => (text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``)
    const what = row.refused === undefined ? row.meaning : `${row.meaning}: refused; ${row.refused}`
    return `| ${[
      code(spellingOf(row)),
      (row.environment ?? []).map(code).join(', '),
      (row.xml ?? []).map((path) => code(`<${path}>`)).join(', '),
      what.replaceAll('|', '\\|'),
    ].join(' | ')} |`
  }),
]
