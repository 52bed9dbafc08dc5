/** The glossary as a test: names, texts, comments and documents use the field's words. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { forbiddenNames, forbiddenWords, wordExceptions } from './support/glossary.ts'
import {
  codeOf,
  documents,
  Exceptions,
  filesUnder,
  lineNumber,
  sources,
  textOf,
} from './support/source-files.ts'

const exceptions = new Exceptions(wordExceptions)

const worded = [...sources, ...documents, ...filesUnder('sipp-scenarios')]
  .concat('build.mjs', 'package.json')
  .filter((path) => path !== 'test/support/glossary.ts')

/** Splits names into words (`callId`, `call_id`); line numbers stay. */
const splitNames = (text: string): string =>
  text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ')

/** The first line is the path. */
function placeIn(text: string, index: number): string {
  const line = lineNumber(text, index) - 1
  return line === 0 ? 'its name' : `line ${line}`
}

function wordComplaints(path: string): { rule: string; path: string; what: string }[] {
  const text = `${path}\n${textOf.get(path) ?? readFileSync(path, 'utf8')}`
  const code = `${path}\n${codeOf.get(path) ?? ''}`
  const found = (list: typeof forbiddenWords, where: string) =>
    list.flatMap(({ name, pattern, instead }) =>
      [...where.matchAll(pattern)].map((match) => ({
        rule: `word ${name}`,
        path,
        what: `${placeIn(where, match.index)}: "${match[0]}"; use ${instead}`,
      })),
    )
  return [...found(forbiddenWords, splitNames(text)), ...found(forbiddenNames, code)]
}

test('names, texts, comments and documents use the words of the glossary', () => {
  const complaints = worded.flatMap(wordComplaints)
  expect(
    complaints.flatMap((complaint) => exceptions.without(complaint.rule, [complaint])),
  ).toEqual([])
})

test('every exception is still needed', () => {
  expect(exceptions.unused()).toEqual([])
})
