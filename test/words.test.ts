/** How code reads: a noun names one thing, a comment is a sentence, a line fits a screen. */
import { expect, test } from 'vitest'
import { codeOf, holds, textOf } from './support/source-files.ts'

/** It is written by a program, from the names of the API. */
const generated = 'control/client/operations.ts'

const withoutGenerated = (texts: ReadonlyMap<string, string>): readonly (readonly string[])[] =>
  [...texts].filter(([path]) => path !== generated)

test('no exported type has the name of another one', () => {
  const places = new Map<string, string[]>()
  for (const [path = '', code = ''] of withoutGenerated(codeOf))
    for (const [, name = ''] of code.matchAll(
      /^export (?:abstract )?(?:interface|class|type) (\w+)/gm,
    ))
      places.set(name, [...(places.get(name) ?? []), path])
  const doubled = [...places].filter(([, paths]) => paths.length > 1)
  expect(doubled.map(([name, paths]) => `${name}: ${paths.join(', ')}`)).toEqual([])
})

test('a PBX is a node, and a process of Tollgate an instance', () => {
  // The table of instances has its name from the first version.
  const wrong =
    /\b(?:nodes?\??: (?:\(\) => )?(?:readonly )?(?:(?:Pick|Omit|Partial)<)?\w*Instance(?!Table)|instances?\??: (?:readonly )?(?:(?:Pick|Omit|Partial)<)?Node(?!JS))\w*/g
  const complaints = withoutGenerated(codeOf).flatMap(([path, code = '']) =>
    (code.match(wrong) ?? []).map((declaration) => `${path}: ${declaration}`),
  )
  expect(complaints).toEqual([])
})

test('no comment begins with a fragment: it names its subject', () => {
  const complaints = withoutGenerated(textOf).flatMap(([path, text = '']) =>
    (text.match(/(?:\/\*\*|\/\/|^[ \t]*\*) (?:Of|What|Whose) .*/gm) ?? []).map(
      (comment) => `${path}: ${comment}`,
    ),
  )
  expect(complaints).toEqual([])
})

/** Tables of data, in which a line is a row, and pages of HTML. */
const tables = [
  'schema/migrations/first',
  'control/http/openapi-pages.ts',
  'control/console/guide-diagram.mjs',
  'control/console/guide-page.mjs',
]
/** A regular expression cannot be broken. */
const expression = /^\s*\/(?!\*).*\/[a-z]*,?$/

test('a line has at most 100 columns', () => {
  const complaints = withoutGenerated(textOf)
    .filter(([path = '']) => !tables.some((table) => holds(table, path)))
    .flatMap(([path, text = '']) =>
      text
        .split('\n')
        .filter((line) => line.length > 100 && !expression.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    )
  expect(complaints).toEqual([])
})
