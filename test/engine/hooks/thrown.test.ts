import { expect, test } from 'vitest'
import { describeThrown, problemLine } from '../../../engine/hooks/thrown.ts'

const own = '/opt/tollgate/dist'
const lineOf = (thrown: unknown): string => problemLine(describeThrown(thrown, own))

function errorWith(message: string, ...frames: readonly string[]): Error {
  const error = new TypeError(message)
  error.stack = [`TypeError: ${message}`, ...frames.map((each) => `    at ${each}`)].join('\n')
  return error
}

test('the place of an error is that of the first frame in the operator’s files', () => {
  expect(
    lineOf(
      errorWith(
        'no such key',
        'parse (node:internal/url:12:3)',
        'get (file:///srv/node_modules/map/index.js:4:5)',
        'Object.onInvite (file:///srv/hooks.ts:17:9)',
        'run (file:///opt/tollgate/dist/hook-worker-1.js:3:1)',
      ),
    ),
  ).toBe('/srv/hooks.ts:17: TypeError: no such key')
  expect(lineOf(errorWith('own', 'run (file:///opt/tollgate/dist/hook-worker-1.js:3:1)'))).toBe(
    'TypeError: own',
  )
})

test('the place of a syntax error stands before its stack', () => {
  const error = new SyntaxError('Unexpected token')
  error.stack = '/srv/hooks.ts:3\n  return {{\n          ^\n\nSyntaxError: Unexpected token'
  expect(lineOf(error)).toBe('/srv/hooks.ts:3: SyntaxError: Unexpected token')
})

test('an error that another one has caused says both', () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:8071')
  const failed = new TypeError('fetch failed', { cause: refused })
  failed.stack = ''
  expect(lineOf(failed)).toBe('TypeError: fetch failed: connect ECONNREFUSED 127.0.0.1:8071')
  const several = Object.assign(new AggregateError([refused, refused]), { code: 'ECONNREFUSED' })
  failed.cause = several
  expect(lineOf(failed)).toBe('TypeError: fetch failed: ECONNREFUSED')
})

test('whatever is thrown becomes one short line', () => {
  const inspected = {
    toString: () => {
      throw new Error('never')
    },
    get [Symbol.toStringTag](): string {
      throw new Error('never')
    },
  }
  for (const thrown of [undefined, null, 7, 'two\nlines', { a: 'x'.repeat(9_000) }, inspected]) {
    expect(lineOf(thrown)).toMatch(/^threw [^\n]{1,310}$/)
  }
})
