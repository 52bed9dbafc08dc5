import { expect, test } from 'vitest'
import {
  checkRequest,
  checkResponse,
  type MalformedMessage,
  parseMessage,
} from '../../../schema/sip/parse.ts'
import { decodeMessage, encodeMessage, type SipMessage } from '../../../schema/sip/message.ts'
import { parseNameAddr, parseVia, parseUri } from '../../../schema/sip/fields.ts'
import type { Verdict } from '../../vectors/torture.ts'
import { invalidCases } from '../../vectors/torture-invalid.ts'
import { semanticCases } from '../../vectors/torture-semantics.ts'
import { validCases } from '../../vectors/torture-valid.ts'

const allCases = [...validCases, ...invalidCases, ...semanticCases]

function verdictOn(text: string): Verdict {
  const message = parseMessage(decodeMessage(encodeMessage(text)))
  if (message.kind === 'malformed') return verdictOnMalformed(message)
  if (message.kind === 'response') return checkResponse(message) ? 'accepted' : 'dropped'
  return checkRequest(message, 'udp') ?? 'accepted'
}

const verdictOnMalformed = ({ status, reason, message }: MalformedMessage): Verdict =>
  message === undefined ? 'dropped' : { status, reason }

test.each(allCases)('RFC 4475 $name', ({ text, verdict }) => {
  expect(verdictOn(text)).toEqual(verdict)
})

test('every case of RFC 4475 has a verdict', () => {
  expect([validCases.length, invalidCases.length, semanticCases.length]).toEqual([13, 19, 17])
})

/** A case by its name in the RFC, as a message. */
function caseNamed(name: string): SipMessage {
  const text = allCases.find((item) => item.name.startsWith(`${name} `))?.text ?? ''
  const message = parseMessage(text)
  if (message.kind === 'malformed') throw new Error(`${name}: ${message.reason}`)
  return message
}

test('wsinv means what its plain form would mean', () => {
  const message = caseNamed('wsinv')
  expect(message.to?.uri).toBe('sip:vivekg@chair-dnrc.example.com')
  expect([message.toTag, message.fromTag]).toEqual(['1918181833n', '98asjd8'])
  expect(message.from?.displayName).toBe('J Rosenberg \\"')
  expect([message.maxForwards, message.cseq]).toEqual([68, { number: 9, method: 'INVITE' }])
  expect(message.via).toMatchObject({ protocol: 'UDP', host: '192.0.2.2', branch: '390skdjuw' })
  expect(message.list('Via').map((via) => parseVia(via)?.branch)).toEqual([
    '390skdjuw',
    'z9hG4bK9ikj8',
    'z9hG4bK30239',
  ])
  expect(message.contact?.displayName).toBe('Quoted string ""')
  expect(Object.fromEntries(message.contact?.params ?? [])).toEqual({
    newparam: 'newvalue',
    secondparam: '',
    q: '0.33',
  })
  expect(message.get('NewFangledHeader')).toBe('newfangled value continued newfangled value')
  expect(message.get('Subject')).toBe('')
})

test('intmeth keeps method, user, display name and tag to the letter', () => {
  const message = caseNamed('intmeth')
  expect(message.method).toBe("!interesting-Method0123456789_*+`.%indeed'~")
  const uri = parseUri(message.uri)
  expect([uri?.user, uri?.password, uri?.host]).toEqual([
    "1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*",
    "&it+has=1,weird!*pas$wo~d_too.(doesn't-it)",
    'example.com',
  ])
  expect(message.to?.displayName).toBe('BEL:\u0007 NUL:\u0000 DEL:\u007f')
  expect(message.fromTag).toBe("_token~1'+`*%!-.")
  expect(message.from?.params.get("fromparam''~+*_!.-%")).toBe('работа')
  expect(message.get("extensionHeader-!.%*+_`'~")).toBe('\ufeff大停電')
})

test('a semicolon belongs to the user, to the URI or to the header, as the brackets say', () => {
  expect(parseUri(caseNamed('semiuri').uri)?.user).toBe('user;par=u%40example.net')
  expect(caseNamed('cparam01').contact?.params.has('unknownparam')).toBe(true)
  const inUri = caseNamed('cparam02').contact
  expect(inUri?.params.size).toBe(0)
  expect(parseUri(inUri?.uri ?? '')?.params.has('unknownparam')).toBe(true)
  const escaped = parseNameAddr(caseNamed('regescrt').get('Contact') ?? '')
  expect(parseUri(escaped?.uri ?? '')?.headers).toEqual([['Route', '<sip:sip.example.com>']])
})
