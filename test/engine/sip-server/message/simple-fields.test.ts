import { expect, test } from 'vitest'
import {
  parseContentLength,
  parseCSeq,
  parseExpires,
  parseMaxForwards,
  parseMinSE,
  parseOptionTags,
  parseRAck,
  parseReason,
  parseReplaces,
  parseRetryAfter,
  parseSessionExpires,
} from '../../../../engine/sip-server/message/fields.ts'

test('CSeq is a number below 2^31 and a method', () => {
  expect(parseCSeq('0009 \t INVITE')).toEqual({ number: 9, method: 'INVITE' })
  expect(parseCSeq('2147483647 BYE')?.number).toBe(2147483647)
  expect(
    ['2147483648 BYE', '1', '1 ', 'BYE', '1BYE', '-1 BYE', '1 B YE', '1.5 BYE', ''].map(parseCSeq),
  ).toEqual(Array(9).fill(undefined))
})

test('Max-Forwards is 0 to 255', () => {
  expect(['0', '070', '255', '256', '-1', '', '7x', '+7'].map(parseMaxForwards)).toEqual([
    0,
    70,
    255,
    ...Array<undefined>(5).fill(undefined),
  ])
})

test('Content-Length is digits only', () => {
  expect(['0', '349', '-1', '3 4', '0x1', '1e3', '9'.repeat(40)].map(parseContentLength)).toEqual([
    0,
    349,
    ...Array<undefined>(5).fill(undefined),
  ])
})

test('Expires beyond 2^32-1 counts as that', () => {
  expect(['3600', '0', '99999999999999', 'soon', ''].map(parseExpires)).toEqual([
    3600,
    0,
    4294967295,
    undefined,
    undefined,
  ])
})

test('RAck names the response and its request', () => {
  expect(parseRAck('776656 1 INVITE')).toEqual({
    rseq: 776656,
    cseq: { number: 1, method: 'INVITE' },
  })
  expect(parseRAck('776656 1 INVITE INVITE')).toEqual(parseRAck('776656 1 INVITE'))
  expect(['1 INVITE', '1 1', '1 1 I{V', '4294967296 1 INVITE', ''].map(parseRAck)).toEqual(
    Array(5).fill(undefined),
  )
})

test('Session-Expires has seconds and a refresher', () => {
  expect(parseSessionExpires('1800;refresher=UAS;x')).toEqual({ seconds: 1800, refresher: 'uas' })
  expect(parseSessionExpires('90 ; refresher = uac')).toEqual({ seconds: 90, refresher: 'uac' })
  expect(parseSessionExpires('90;refresher=me')).toEqual({ seconds: 90, refresher: undefined })
  expect(['', 'x', '90 x', '-90', '4294967296'].map(parseSessionExpires)).toEqual(
    Array(5).fill(undefined),
  )
  expect([parseMinSE('90;lr'), parseMinSE('x')]).toEqual([90, undefined])
})

test('Reason has protocol, cause and text', () => {
  expect(parseReason('Q.850 ;cause=16 ;text="Normal, call; clearing"')).toEqual({
    protocol: 'q.850',
    cause: 16,
    text: 'Normal, call; clearing',
  })
  expect(parseReason('SIP')).toEqual({ protocol: 'sip', cause: undefined, text: '' })
  expect(['', ';cause=1', 'SIP cause', 'SIP;text="x'].map(parseReason)).toEqual(
    Array(4).fill(undefined),
  )
})

test('option tags of all lines are one lower case list', () => {
  expect(parseOptionTags(['100rel, Timer', '', 'path'])).toEqual(['100rel', 'timer', 'path'])
})

test('Retry-After is seconds, whatever comment and parameters follow', () => {
  expect(
    ['120', '18000;duration=3600', '120 (I am (in) a meeting)', ' 7\t(x)', '5(x)'].map(
      parseRetryAfter,
    ),
  ).toEqual([120, 18_000, 120, 7, 5])
  expect(['', 'soon', '-1', '1.5', '1x', '99999999999', '(1)'].map(parseRetryAfter)).toEqual(
    Array(7).fill(undefined),
  )
})

test('Replaces names a dialog by its Call-ID and both tags', () => {
  expect(parseReplaces('98732@h ; from-tag=r33 ;to-tag=f14;Early-Only;x=y')).toEqual({
    callId: '98732@h',
    toTag: 'f14',
    fromTag: 'r33',
    isEarlyOnly: true,
  })
  expect(parseReplaces('1;to-tag=a;from-tag=b')?.isEarlyOnly).toBe(false)
  expect(
    ['', '1', ';to-tag=a;from-tag=b', '1;to-tag=a', '1;to-tag=;from-tag=b']
      .concat('1;to-tag=a;to-tag=c;from-tag=b', '1;to-tag=a;from-tag=b,2;to-tag=c;from-tag=d')
      .map(parseReplaces),
  ).toEqual(Array(7).fill(undefined))
})
