import { expect, test } from 'vitest'
import { HeaderFilter, unsupportedOptions } from '../../../engine/call/sip-headers.ts'

const filterOf = (...passX: readonly string[]) =>
  new HeaderFilter({ passX: new Set(passX), ownHost: () => 'us:5060' })

test('only what is listed passes, under any spelling that the library keeps', () => {
  const passed = filterOf().invite({
    via: 'SIP/2.0/UDP secret',
    contact: '<sip:secret>',
    'record-route': '<sip:secret>',
    route: '<sip:secret>',
    'user-agent': 'secret',
    authorization: 'secret',
    'proxy-authorization': 'secret',
    'call-id': 'secret',
    'x-call-uuid': 'secret',
    'X-CALL-UUID': 'secret',
    __proto__x: 'secret',
    'P-Early-Media': 'supported',
    Diversion: '<sip:1@secret>;reason=x',
    'content-type': 'application/sdp',
    'x-lower': '1',
    'X-Upper': '2',
  })
  expect(passed).toEqual({
    'p-early-media': 'supported',
    diversion: '<sip:1@us:5060>;reason=x',
    'content-type': 'application/sdp',
  })
})

test.each(['p-asserted-identity', 'Remote-Party-ID'])(
  'a number in %s passes in its normal form, a name as it is',
  (name) => {
    const passed = (value: string) => filterOf().invite({ [name]: value })[name.toLowerCase()]
    expect(passed('"A <b>" <sip:+1-(202)%20555.0100;isub=1:pw@h;user=phone>;party=calling')).toBe(
      '"A <b>" <sip:+12025550100@us:5060;user=phone>;party=calling',
    )
    expect(passed('<sip:1.900@h>, <tel:+1-900;phone-context=x>')).toBe(
      '<sip:1900@us:5060>, <tel:+1900;phone-context=x>',
    )
    for (const other of [
      '<sip:acme.trunk-1@us:5060>',
      '<sip:10.0.0.1>',
      '<sip:1+2@us:5060>',
      '<tel:x>',
    ])
      expect(passed(other)).toBe(other)
  },
)

test('a header of 64 kB that begins an identity over and over takes no noticeable time', () => {
  const filter = filterOf()
  filter.invite({ 'p-asserted-identity': '<sip:1@h>' })
  for (const part of ['<sip:', '<sip:1', '<tel:', '<tel:1;', '<sip:1-1@'])
    for (const value of [part.repeat(65_000 / part.length), `<sip:${part.repeat(13_000)}`]) {
      const startedAt = performance.now()
      filter.inviteAnswer({ 'P-Asserted-Identity': value })
      expect(performance.now() - startedAt).toBeLessThan(500)
    }
})

test('of the X headers only those that an operator has listed pass, in whatever message', () => {
  const filter = filterOf('x-tenant')
  const received = { 'X-Tenant': '1', 'x-tenant': '2', 'X-Internal': '10.9.9.9', 'x-other': '3' }
  const passed = { 'X-Tenant': '1', 'x-tenant': '2' }
  for (const pass of ['invite', 'inviteAnswer', 'inDialog', 'inDialogAnswer', 'bye'] as const) {
    expect(filter[pass](received)).toEqual(passed)
    expect(filterOf()[pass](received)).toEqual({})
  }
})

// RFC 6086 §5.1, RFC 8262: a package that the other side never hears of is never sent.
test('INFO packages are agreed by the parties, and a body keeps its name', () => {
  const headers = { 'Recv-Info': 'g.3gpp.mid-call', 'MIME-Version': '1.0', 'Content-ID': '<1@h>' }
  const passed = { 'recv-info': 'g.3gpp.mid-call', 'mime-version': '1.0', 'content-id': '<1@h>' }
  const filter = filterOf()
  expect(filter.invite(headers)).toEqual(passed)
  expect(filter.inviteAnswer(headers)).toEqual(passed)
})

test('extensions and methods pass only as far as they work through us', () => {
  const filter = filterOf()
  const headers = { supported: 'gruu,timer , 100rel', allow: 'INVITE, REFER, PUBLISH, INFO' }
  expect(filter.invite(headers)).toEqual({ supported: '100rel', allow: 'INVITE, REFER, INFO' })
  expect(filter.inviteAnswer({ ...headers, require: '100rel, timer' })).toEqual({
    allow: 'INVITE, REFER, INFO',
  })
  expect(filter.invite({ supported: 'gruu' })).toEqual({})
  expect(filter.invite({ supported: 'replaces' })).toEqual({ supported: 'replaces' })
})

test('Retry-After passes inside a dialog, not from a node to its caller', () => {
  const headers = { 'retry-after': '60' }
  expect(filterOf().inDialogAnswer(headers)).toEqual(headers)
  expect(filterOf().inviteAnswer(headers)).toEqual({})
})

test('a required extension that we do not do is named', () => {
  expect(unsupportedOptions(undefined)).toBe('')
  expect(unsupportedOptions('timer')).toBe('')
  expect(unsupportedOptions('timer,replaces ,gruu,100rel')).toBe('gruu')
})
