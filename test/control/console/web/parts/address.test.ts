import { expect, test } from 'vitest'
import { pathOf, readAddress } from '../../../../../control/console/web/parts/address.ts'

test.each([
  ['calls', undefined, {}, '/console/calls'],
  ['calls', 'a/b ?', {}, '/console/calls/a%2Fb%20%3F'],
  ['history', undefined, { q: '+49 30', sort: '-cost' }, '/console/history?q=%2B49+30&sort=-cost'],
] as const)('the address of %s %s is a link and is read back', (screen, item, query, path) => {
  expect(pathOf(screen, item, query)).toBe(path)
  const { pathname, search } = new URL(path, 'http://localhost')
  expect(readAddress(pathname, search)).toEqual({ screen, item, query })
})

test('the start names no screen; empty words leave the address', () => {
  expect(readAddress('/', '')).toEqual({ screen: '', item: undefined, query: {} })
  expect(readAddress('/console/%E0%A4%A', '').screen).toBe('%E0%A4%A')
  expect(pathOf('calls', undefined, { q: '', sort: undefined })).toBe('/console/calls')
})
