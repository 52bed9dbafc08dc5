import { expect, test } from 'vitest'
import { Parties } from '../../../engine/media/parties.ts'
import { noMediaRules } from '../../../schema/rules/media.ts'

const parties = new Parties({
  rules: {
    routing: { mediaOf: () => undefined },
    dispatcher: { setRecord: () => undefined },
    registrar: { extensionAt: () => undefined },
  },
  calls: { call: () => undefined },
  policy: 'bypass',
  isRecorded: () => false,
  mustBeRecorded: () => false,
})
const invite = { protocol: 'udp', sourceAddress: '192.0.2.1' }

test('the rules of a caller are looked up when it is known; one that has proved to be another node has none', () => {
  expect(parties.caller({ ...invite, headers: {} }).rules).toBeUndefined()
  expect(parties.caller({ ...invite, headers: {} }, true).rules).toBe(noMediaRules)
})

test('a header by which nodes prove who they are frees no caller from its rules', () => {
  const headers = { 'X-Tollgate-Transfer': 'token' }
  expect(parties.caller({ ...invite, headers }).rules).toBeUndefined()
})
