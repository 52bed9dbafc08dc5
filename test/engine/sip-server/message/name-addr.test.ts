import { expect, test } from 'vitest'
import {
  parseAnsweredTo,
  parseNameAddr,
  qValueOf,
  tagOf,
} from '../../../../engine/sip-server/message/fields.ts'
import { paramsOf } from './sample.ts'

test.each([
  ['"A, <B>; \\"C\\"" <sip:a@b;x=1?h=2>;tag=t', 'A, <B>; "C"', 'sip:a@b;x=1?h=2', 't'],
  ['Bob Smith <sip:b@c>;tag=t', 'Bob Smith', 'sip:b@c', 't'],
  ['"" <sip:a@b>', '', 'sip:a@b', undefined],
  ['<tel:+1-555>;tag=t', '', 'tel:+1-555', 't'],
  ['Bob<sips:b@c> ; TAG = t', 'Bob', 'sips:b@c', 't'],
  ['"Bob"<sip:b@c>', 'Bob', 'sip:b@c', undefined],
  ['  sip:b@c ;tag=t', '', 'sip:b@c', 't'],
  ['Zoë (work) <sip:b@c>', 'Zoë (work)', 'sip:b@c', undefined],
  ['urn:service:sos', '', 'urn:service:sos', undefined],
])('%s', (value, displayName, uri, tag) => {
  const address = parseNameAddr(value)
  expect(address).toMatchObject({ displayName, uri })
  expect(address?.params.get('tag')).toBe(tag)
})

test('without brackets the parameters belong to the header', () => {
  expect(parseNameAddr('sip:a@b;transport=tcp')).toMatchObject({
    displayName: '',
    uri: 'sip:a@b',
    params: paramsOf([['transport', 'tcp']]),
  })
})

test.each([
  '',
  '*',
  '<>',
  '<sip:a@b',
  'sip:a@b>',
  '"x <sip:a@b>',
  '"x" sip:a@b',
  'a, b <sip:a@b>',
  '< sip:a@b>',
  '<sip:a b@c>',
  'sip:a@b?h=1',
  'sip:a@b,sip:c@d',
  '<sip:a@b> x',
  '<sip:a@b>;tag=1;tag=2',
  'bob',
  '<bob>',
  '<sip:a@b>>',
  '<<sip:a@b>',
])('%s is no address', (value) => {
  expect(parseNameAddr(value)).toBeUndefined()
})

test('of two tags in the To of a response the first counts', () => {
  const to = '"Bob;tag=0" <sip:b@c;tag=9>'
  expect(parseAnsweredTo(`${to};tag=1 ;Tag = 2;x`)).toEqual(parseNameAddr(`${to};tag=1 `))
  expect(parseAnsweredTo('sip:b@c;tag=1;tag=2')?.params.get('tag')).toBe('1')
  expect(parseAnsweredTo(`${to};x;tag=1`)?.params.get('x')).toBe('')
  expect([`${to};tag=1;x=1;x=2`, `${to};tag=1;"`, '<>;tag=1;tag=2'].map(parseAnsweredTo)).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

test.each([
  ['<sip:a@b>', 1_000],
  ['<sip:a@b>;q=0.25', 250],
  ['<sip:a@b>;Q=0', 0],
  ['<sip:a@b>;q=1.000', 1_000],
  ['<sip:a@b>;q=0.2555', 1_000],
  ['<sip:a@b>;q=high', 1_000],
])('%s is preferred by %d thousandths', (value, q) => {
  const address = parseNameAddr(value)
  expect(address && qValueOf(address)).toBe(q)
})

test('the tag of a From or To is found in any spelling', () => {
  expect(['<sip:a@b>;x; TAG=t1;y', 'bob;tag=2', '<sip:a@b>', '', undefined].map(tagOf)).toEqual([
    't1',
    '2',
    '',
    '',
    '',
  ])
})
