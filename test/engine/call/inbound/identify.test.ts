/** Who calls, where the address says one thing and From another. */
import { expect, test } from 'vitest'
import { identify } from '../../../../engine/call/inbound/admission.ts'
import type { SipRequest } from '../../../../engine/call/signalling.ts'
import type { Origin } from '../../../../engine/routing/routing.ts'
import { startRegistrar } from '../../registrar/phone.ts'
import { carrierOrigin } from '../steps.ts'

/** Tenant 1 has 101@acme.example; tenant 2 says that it is at the address of that phone. */
const [acme, other] = [1, 2]

const node = (tenantId?: number): Origin => ({
  kind: 'node',
  nodeId: 7,
  setId: 3,
  ...(tenantId !== undefined && { tenantId }),
})
const carrier = (tenantId: number | null): Origin => carrierOrigin({ tenantId })

async function kindOf(origin: Origin, headers: Readonly<Record<string, string>>): Promise<string> {
  const { registrar } = await startRegistrar()
  const source = { protocol: 'udp', sourceAddress: '203.0.113.9', sourcePort: 5060 }
  const request = { method: 'INVITE', headers, ...source } as unknown as SipRequest
  const recognized = identify(request, { registrar, routing: { recognize: () => origin } })
  return recognized.kind === 'challenged' ? 'challenged' : recognized.origin.kind
}

const named = { from: '<sip:101@acme.example>;tag=1' }
const hidden = {
  from: '<sip:anonymous@anonymous.invalid>;tag=1',
  'p-preferred-identity': '<sip:101@acme.example>',
}

test.each([
  ['a node', node(other), named],
  ['a node, of a hidden number', node(other), hidden],
  ['a carrier', carrier(other), named],
  ['a carrier, of a hidden number', carrier(other), hidden],
])(
  'a phone at whose address another tenant has put %s is asked for its password, and its call is its own',
  async (_, origin, headers) => expect(await kindOf(origin, headers)).toBe('challenged'),
)

test.each([
  ['a node of its own tenant', node(acme), named, 'node'],
  ['a node of the platform', node(), named, 'node'],
  [
    'a node that names no user of ours',
    node(other),
    { from: '<sip:15551234@pbx.example>' },
    'node',
  ],
  ['a node that names an unknown user', node(other), { from: '<sip:199@acme.example>' }, 'node'],
  ['a carrier of its own tenant that hides who calls', carrier(acme), hidden, 'carrier'],
  ['a carrier of the platform that hides who calls', carrier(null), hidden, 'carrier'],
])('calls of %s are those of the node or carrier', async (_, origin, headers, kind) =>
  expect(await kindOf(origin, headers)).toBe(kind),
)
