import { expect, test } from 'vitest'
import { hooksOf } from '../../../engine/hooks/loaded-hooks.ts'

const namesOf = (exported: Readonly<Record<string, unknown>>) => {
  const read = hooksOf(exported)
  return read.kind === 'hooks' ? [...read.hooks.keys()] : read.message
}
const hook = () => undefined

test('hooks are exported by name, in the default export, or by CommonJS', () => {
  expect(namesOf({ onInvite: hook, helper: hook })).toEqual(['onInvite'])
  expect(namesOf({ default: { onInvite: hook, onEnd: hook } })).toEqual(['onInvite', 'onEnd'])
  expect(namesOf({ onEnd: hook, default: { onInvite: hook } })).toEqual(['onInvite', 'onEnd'])
  expect(namesOf({ default: { __esModule: true, default: { onRoute: hook } } })).toEqual([
    'onRoute',
  ])
})

test('a method of the default export has it as `this`', () => {
  class Office {
    number = '4930'
    onInvite(): unknown {
      return { to: this.number }
    }
  }
  const read = hooksOf({ default: new Office() })
  expect(read.kind === 'hooks' && read.hooks.get('onInvite')?.({})).toEqual({ to: '4930' })
})

test('a function as default export is middleware, beside hooks by name', () => {
  expect(hooksOf({ default: hook, onInvite: hook })).toMatchObject({ middleware: hook })
})

test('CommonJS that is written by hand may have both: `exports.default` and hooks', () => {
  const written = { default: { onInvite: hook, default: hook } }
  expect(hooksOf(written)).toMatchObject({ middleware: hook })
  expect(namesOf(written)).toEqual(['onInvite'])
})

test('a hook that is no function is refused, and a misspelt one is told', () => {
  expect(namesOf({ onInvite: 'x' })).toBe('onInvite is a string where a function is expected')
  expect(hooksOf({ onInvite: hook, onInivte: hook })).toMatchObject({
    warnings: [expect.stringContaining('onInivte is exported, and is no hook')],
  })
})
