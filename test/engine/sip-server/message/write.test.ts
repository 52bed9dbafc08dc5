import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  readAddress,
  parseNameAddr,
  parseUri,
  unescapeText,
} from '../../../../engine/sip-server/message/fields.ts'
import {
  escapeUser,
  formatNameAddr,
  replaceHosts,
  replaceUsers,
  withoutUriParams,
} from '../../../../engine/sip-server/message/message.ts'

test('a display name is quoted so that it cannot end its quotes', () => {
  expect(formatNameAddr('a "b" \\', 'sip:1@h')).toBe('"a \\"b\\" \\\\" <sip:1@h>')
  expect(formatNameAddr('', 'sip:1@h')).toBe('<sip:1@h>')
})

test('a name and a user part are read back as they were written', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(text, text, (name, user) => {
      const uri = `sip:${escapeUser(user.replaceAll('%', ''))}@h`
      const written = formatNameAddr(name, uri)
      expect(readAddress(written)).toEqual({ displayName: name, uri })
      expect(parseNameAddr(written)).toMatchObject({ displayName: name, uri })
    }),
  )
})

test('what may not stand in a user part is escaped, escapes stay', () => {
  expect(['+1555', '#100', '%23100', 'a b', 'a@b', 'é'].map(escapeUser)).toEqual([
    '+1555',
    '%23100',
    '%23100',
    'a%20b',
    'a%40b',
    '%C3%A9',
  ])
  expect(escapeUser('1\ud83d')).toBe('1%EF%BF%BD')
  expect(parseUri(`sip:${escapeUser('a:b<c>')}@h`)?.user).toBe('a%3Ab%3Cc%3E')
})

test('escapes are resolved, and none that would break a header line', () => {
  expect(['a', 'a%20b', '%23', '%', '%zz', '%ff', '%0d%0a', '%00'].map(unescapeText)).toEqual([
    'a',
    'a b',
    '#',
    ...Array<undefined>(5).fill(undefined),
  ])
})

test('From and To carry no parameters of a URI', () => {
  expect(
    ['sip:a;x=1@h:5060;transport=tcp', 'sip:h', 'tel:+1;phone-context=x'].map(withoutUriParams),
  ).toEqual(['sip:a;x=1@h:5060', 'sip:h', 'tel:+1;phone-context=x'])
})

test('users and hosts are replaced in every URI of a list, and not in names', () => {
  const value = '"1@x <sip:" <sip:1:pw@a:5060;x=1>, <tel:2;isub=3>, <sip:h>'
  expect(replaceUsers(value, (user) => `[${user}]`)).toBe(
    '"1@x <sip:" <sip:[1:pw]@a:5060;x=1>, <tel:[2];isub=3>, <sip:h>',
  )
  expect(replaceHosts(value, 'us')).toBe('"1@x <sip:" <sip:1:pw@us;x=1>, <tel:2;isub=3>, <sip:h>')
  const quoted = '"q\\"@z" <sip:1@[::1]:5>;reason=x, <sip:2@a?Reason=x>'
  expect(replaceHosts(quoted, 'us')).toBe('"q\\"@z" <sip:1@us>;reason=x, <sip:2@us?Reason=x>')
})
