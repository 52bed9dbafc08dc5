import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { denialPhrase } from '../../../../../control/console/web/screens/denial-words.ts'

test('every code of a denial has a phrase', () => {
  const source = readFileSync('schema/contracts/denials.ts', 'utf8')
  const codes = [...source.matchAll(/^ {2}([a-z_]+): \{$/gm)].map(([, code = '']) => code)
  expect(codes).toContain('no_candidate')
  expect(codes.filter((code) => denialPhrase(code) === undefined)).toEqual([])
})
