import { expect, test } from 'vitest'
import { nodeNameOf, nodeUrlOf } from '../../../engine/stores/node-place.ts'

const unset = { node: { name: undefined, url: undefined } }

test('a node has the name of its host, unless it is given another one', () => {
  expect(nodeNameOf(unset, 'sbc-1.example.com')).toBe('sbc-1.example.com')
  expect(nodeNameOf({ node: { name: 'a', url: undefined } }, 'sbc-1')).toBe('a')
  expect(() => nodeNameOf(unset, 'sbc 1')).toThrow('NODE_NAME is not set')
})

test.each([
  [{ host: '10.0.0.1', port: 8080 }, 'http://10.0.0.1:8080'],
  [{ host: '0.0.0.0', port: 8080 }, 'http://sbc-1:8080'],
  [{ host: '::', port: 8080 }, 'http://sbc-1:8080'],
  [{ host: '2001:db8::1', port: 80 }, 'http://[2001:db8::1]:80'],
])('other nodes reach %o at %s', (place, url) => {
  expect(nodeUrlOf(unset, place, 'sbc-1')).toBe(url)
  const given = { node: { name: undefined, url: 'https://sbc.example.com' } }
  expect(nodeUrlOf(given, place, 'sbc-1')).toBe('https://sbc.example.com')
})
