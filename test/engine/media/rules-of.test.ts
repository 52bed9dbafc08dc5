import { expect, test } from 'vitest'
import { type RuleSources, rulesOf } from '../../../engine/media/policy.ts'
import { candidate } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import { noRules } from '../../support/media-party.ts'
import type { MediaRules } from '../../../schema/contracts/field-values.ts'

const named = (codec: string): MediaRules => ({ ...noRules, codecs: [codec] })
const sources: RuleSources = {
  routing: {
    mediaOf: (party) =>
      named('agentId' in party ? `agent ${party.agentId}` : `carrier ${party.carrierId}`),
  },
  dispatcher: { setRecord: (setId) => ({ media: named(`set ${setId}`) }) },
  registrar: {
    extensionAt: (domain, extension) =>
      extension === '101' ? { media: named(`101@${domain}`) } : undefined,
  },
}
const phone = { uri: 'sip:x', routes: [], nextHop: undefined, domain: 'a.example', tenantId: 1 }

test.each([
  [gateway({ carrierId: 7 }), 'carrier 7'],
  [
    { kind: 'agent', agentId: 3, name: 'bot', tenantId: null, uri: 'sip:bot@x' } as const,
    'agent 3',
  ],
  [candidate(1, 5_070), 'set 1'],
  [{ kind: 'node', nodeId: 1, setId: 2 } as const, 'set 2'],
  [{ kind: 'phone', ...phone, extension: '101' } as const, '101@a.example'],
])('%o', (party, codec) => {
  expect(rulesOf(party, sources).codecs).toEqual([codec])
})

test('what a supervisor hears is known to relays only', () => {
  const listened = { callUuid: 'x', side: 'both' } as const
  const rules = rulesOf({ kind: 'listener', uri: 'relay:x', listened }, sources)
  expect(rules).toEqual({ ...noRules, policy: 'anchor', profile: 'rtp' })
})

test('a party about which nothing was said has no rules', () => {
  expect(rulesOf({ kind: 'unknown' }, sources)).toEqual(noRules)
  expect(rulesOf({ kind: 'trusted' }, sources)).toEqual(noRules)
  expect(rulesOf({ kind: 'phone', ...phone, extension: '102' }, sources)).toEqual(noRules)
})
