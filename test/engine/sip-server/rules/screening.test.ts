import { expect, test } from 'vitest'
import type { NewRequest } from '../../../../engine/sip-server/options.ts'
import { screening, type ScreeningRules } from '../../../../engine/sip-server/rules/screening.ts'

const rules: ScreeningRules = {
  spammers: [
    { name: 'user-agent', values: ['sipcli', 'friendly-scanner'] },
    { name: 'to', values: ['9011'] },
    { name: 'from', values: ['100'] },
  ],
  action: 'reject',
  streamAction: 'discard',
  optionsUserAgent: 'JsSIP 3.8.2',
  rejectsRegisterWithoutRealm: true,
}

const request = (what: Partial<NewRequest> & { headers?: Record<string, string> }): NewRequest => ({
  method: 'INVITE',
  uri: 'sip:1@example.com',
  protocol: 'udp',
  text: '',
  sourceAddress: '192.0.2.1',
  sourcePort: 5_060,
  get: (name) => what.headers?.[name],
  ...what,
})

const judge = (what: Parameters<typeof request>[0], judged = rules) =>
  screening(judged)?.(request(what))

const decline = { status: 603, reason: 'Decline' }

test.each([
  [{ 'User-Agent': 'sipcli/v1.8' }, decline],
  [{ 'User-Agent': 'SIPCLI' }, undefined],
  [{ To: '"x" <sip:90118005551212@h>;tag=1' }, decline],
  [{ To: '<sip:1@9011.example.com>' }, undefined],
  [{ From: 'sip:100@h' }, decline],
  [{}, undefined],
] as const)('headers %j: %j', (headers, outcome) => {
  expect(judge({ headers })).toEqual(outcome)
})

test('on streams the other action holds', () => {
  const headers = { 'User-Agent': 'sipcli' }
  for (const protocol of ['tcp', 'tls', 'ws', 'wss'] as const)
    expect(judge({ headers, protocol })).toBe('drop')
  expect(judge({ headers }, { ...rules, action: 'discard' })).toBe('drop')
})

test('OPTIONS with exactly the User-Agent get 200', () => {
  const answer = (method: string, agent: string) =>
    judge({ method, headers: { 'User-Agent': agent } })
  expect(answer('OPTIONS', 'JsSIP 3.8.2')).toEqual({ status: 200, reason: 'OK' })
  expect(answer('OPTIONS', 'JsSIP 3.8.21')).toBeUndefined()
  expect(answer('INVITE', 'JsSIP 3.8.2')).toBeUndefined()
})

test('REGISTER for an address in place of a domain gets 403', () => {
  const register = (uri: string) => judge({ method: 'REGISTER', uri })
  expect(register('sip:192.0.2.9')).toEqual({ status: 403, reason: 'Forbidden' })
  expect(register('sip:example.com')).toBeUndefined()
})

test('without rules nothing is looked at', () => {
  const none = { ...rules, spammers: [], optionsUserAgent: undefined }
  expect(screening({ ...none, rejectsRegisterWithoutRealm: false })).toBeUndefined()
})
