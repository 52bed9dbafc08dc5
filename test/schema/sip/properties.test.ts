import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checkRequest,
  checkResponse,
  parseAppMessage,
  parseMessage,
} from '../../../schema/sip/parse.ts'
import { byteLength, decodeMessage, encodeMessage } from '../../../schema/sip/message.ts'
import {
  parseNameAddr,
  parseReason,
  parseSessionExpires,
  sameUri,
} from '../../../schema/sip/fields.ts'
import { invalidCases } from '../../vectors/torture-invalid.ts'
import { validCases } from '../../vectors/torture-valid.ts'
import { invite, read } from './sample.ts'

/** One of these characters. */
const oneOf = (characters: string) => fc.constantFrom(...characters.split(''))

const tokenCharacter = oneOf("abcXYZ09-.!%*_+`'~")
const name = fc
  .string({ unit: tokenCharacter, minLength: 2, maxLength: 20 })
  .filter((text) => text.toLowerCase() !== 'content-length')
const value = fc
  .string({ unit: 'grapheme', maxLength: 40 })
  .map((text) => text.replace(/[\r\n]/g, '').replace(/^[ \t]+|[ \t]+$/g, ''))

/** A message as the core writes it: lines, the length in bytes, a blank line, the body. */
function written(headers: readonly (readonly [string, string])[], body: string): string {
  const lines = headers.map(([header, content]) => `${header}: ${content}\r\n`)
  const length = `Content-Length: ${byteLength(body)}`
  return `MESSAGE sip:a@b SIP/2.0\r\n${lines.join('')}${length}\r\n\r\n${body}`
}

test('what is written is read back, header by header and byte by byte', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value)), fc.uint8Array(), (headers, bytes) => {
      const body = decodeMessage(Buffer.from(bytes))
      const text = written(headers, body)
      const message = read(decodeMessage(encodeMessage(text)))
      expect(message.entries().slice(0, -1)).toEqual(headers)
      expect(encodeMessage(message.body)).toEqual(Buffer.from(bytes))
    }),
  )
})

/** Asks a text for everything that can be asked; answers the header values that it gave. */
function valuesOf(text: string): readonly string[] {
  return [parseMessage(text), parseAppMessage(text)].flatMap((result) => {
    const message = result?.kind === 'malformed' ? result.message : result
    if (message === undefined) return []
    const { via, callId, cseq, from, to, contact, maxForwards, body } = message
    checkResponse(message)
    checkRequest(message, 'tcp')
    for (const [header, content] of message.entries()) {
      message.list(header)
      parseNameAddr(content)
      parseReason(content)
      parseSessionExpires(content)
    }
    sameUri(message.uri, from?.uri ?? to?.uri ?? contact?.uri ?? `${via?.host}${cseq?.number}`)
    expect(message.text.endsWith(body)).toBe(true)
    return [callId, `${maxForwards}`, ...message.entries().map(([, content]) => content)]
  })
}

const separators = '\r\n\t :;,<>"\\@?=%&[]/*'

test('no text makes anything throw, and no value holds a line break', () => {
  const part = fc.oneof(
    oneOf(separators),
    fc.constantFrom('SIP/2.0', 'Via', 'a', '1', 'é', '\udcff', '\0'),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 120 }), (parts) => {
      const text = parts.join('')
      expect([...valuesOf(text), ...valuesOf(invite([text]))].join()).not.toMatch(/[\r\n]/)
    }),
  )
})

test('no damage to a torture message makes anything throw', () => {
  const texts = [...validCases, ...invalidCases].map(({ text }) => text)
  const damage = fc.record({
    text: fc.constantFrom(...texts),
    at: fc.nat(1500),
    cut: fc.nat(20),
    put: fc.string({ unit: oneOf(separators), maxLength: 4 }),
  })
  fc.assert(
    fc.property(damage, ({ text, at, cut, put }) => {
      const damaged = text.slice(0, at) + put + text.slice(at + cut)
      expect(valuesOf(damaged).join()).not.toMatch(/[\r\n]/)
    }),
    { numRuns: 500 },
  )
})

const fields = 'Via From To CSeq Contact Call-ID X Content-Length Reason'.split(' ')

/**
 * Shapes that make careless parsers quadratic, each about 60 KB: some seconds, instead of some ms.
 */
test.each([
  ['blanks', ' '.repeat(60_000) + 'x'],
  ['blank continuation lines', '\r\n '.repeat(20_000)],
  ['folded lines', 'x\r\n '.repeat(15_000)],
  ['semicolons', ';'.repeat(60_000)],
  ['commas', ','.repeat(60_000)],
  ['open brackets', '<'.repeat(60_000)],
  ['open quotes', '"\\'.repeat(30_000)],
  ['commas and brackets', ',<'.repeat(30_000)],
  ['separators and blanks', '; \t'.repeat(20_000) + 'x'],
  ['percents', '%'.repeat(60_000)],
  ['at signs', 'sip:' + 'a@'.repeat(30_000)],
  ['a long list', 'sip:a@b,'.repeat(7_500)],
  ['lines without colon', 'x\r\nbc\r\n'.repeat(8_000)],
])('%s cost linear time in any field', (_, hostile) => {
  const microseconds = fields.map((field) => {
    const without = invite().replace(new RegExp(`^${field}: .*\r\n`, 'm'), '')
    const text = without.replace('\r\n\r\n', `\r\n${field}: ${hostile}\r\n\r\n`)
    const before = process.cpuUsage()
    valuesOf(text)
    return process.cpuUsage(before).user
  })
  expect(Math.max(...microseconds)).toBeLessThan(400_000)
})

test.each([
  ['without colon', 'x\r\n'],
  ['without carriage return', 'x:\n'],
])('many lines %s are looked through once', (_, line) => {
  const text = invite().replace('\r\n\r\n', `\r\n${line.repeat(300_000)}`)
  const before = process.cpuUsage()
  expect([parseMessage(text).kind, parseAppMessage(text)?.kind]).toEqual(['malformed', 'request'])
  expect(process.cpuUsage(before).user).toBeLessThan(1_500_000)
})
