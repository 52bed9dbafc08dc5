/** Who may send requests in a call from another address than before. */
import { expect, test } from 'vitest'
import { refusalInDialog, type InDialogDeps } from '../../../engine/call/in-dialog-source.ts'
import { sampleStart } from '../../support/call-machine.ts'
import { beginCall } from '../../../engine/call/call-machine/call.ts'
import { emptyWorld, nowhere } from '../../../engine/call/call-machine/state.ts'
import {
  Recognition,
  type ExtensionOrigin,
  type Origin,
} from '../../../engine/routing/recognition.ts'
import { Tenancy } from '../../../engine/routing/tenancy.ts'
import { sampleCarrier, sampleGateway, tenantRecord } from '../routing/samples.ts'

const names: Readonly<Record<string, readonly string[]>> = { 'sbc.north.example': ['192.0.2.77'] }
const nodes: Readonly<Record<string, number>> = { '10.0.0.1': 1, '10.0.0.2': 1, '10.0.0.9': 2 }

const gatewaysOf = (carrierId: number, hosts: readonly string[]) =>
  hosts.map((host, index) =>
    sampleGateway(10 * carrierId + index, {
      host,
      port: 0,
      netmask: host.endsWith('.0') ? 24 : 32,
    }),
  )

const recognition = new Recognition({
  trustedSources: ['192.0.2.200/30'],
  edgeProxies: [{ network: '10.1.0.0/24', tenants: ['acme'] }],
  nodeAt: (address) => {
    const setId = nodes[address]
    return setId === undefined ? undefined : { nodeId: 1, setId, tenantId: null, isNamed: false }
  },
  hosts: { version: 0, addressesOf: (host) => names[host] ?? [host] },
})
const north = gatewaysOf(1, ['198.51.100.0', 'sbc.north.example'])
recognition.replace(
  [
    sampleCarrier(1, { direction: 'both', gateways: north }),
    sampleCarrier(2, { direction: 'out', gateways: gatewaysOf(2, ['203.0.113.0']) }),
  ],
  new Tenancy([tenantRecord(5, { slug: 'acme' }), tenantRecord(6, { slug: 'globex' })]),
)

const phone: ExtensionOrigin = {
  kind: 'extension',
  extensionId: 1,
  tenantId: 5,
  customerId: null,
  domain: 'acme.example',
  extension: '101',
  displayName: '',
}

/** The answer that a BYE from `from` gets in the dialog of a party that was at `at`. */
function answerTo(from: string, at: string, origin: Origin, carrierId: number | null = null) {
  const call = beginCall(emptyWorld('sbc-1'), { start: sampleStart('1'), stampOffsetMs: 0 })
  call.origin = origin
  call.place = { ...nowhere, carrierId, setId: carrierId === null ? null : 1 }
  const challenge = { status: 407, reason: 'R', headers: { 'Proxy-Authenticate': ['a', 'b'] } }
  const refused: string[] = []
  const deps: InDialogDeps = {
    calls: { partyIn: () => ({ call, side: carrierId === null ? 'caller' : 'callee' }) },
    routing: recognition,
    registrar: { extensionAt: () => undefined, challengeInCall: () => challenge },
    isInstance: (address) => address === '10.2.0.1',
    onRefused: ({ method }) => void refused.push(method),
  }
  const request = { method: 'BYE', get: () => undefined }
  const refusal = refusalInDialog(
    { ...request, protocol: 'udp', sourceAddress: from, sourcePort: 5_060 },
    { callId: 'c', localTag: 'l', remoteTag: 'r', address: at, port: 5_060 },
    deps,
  )
  expect(refused).toEqual(refusal?.status === 403 ? ['BYE'] : [])
  return refusal
}

const stranger: Origin = { kind: 'unknown' }

test.each<[string, string, string, Origin, number | null]>([
  ["another address of the carrier's network", '198.51.100.8', '198.51.100.7', stranger, null],
  ['another host of the carrier, by its name', '192.0.2.77', '198.51.100.7', stranger, null],
  ['another gateway of a carrier that only takes calls', '203.0.113.9', '203.0.113.8', stranger, 2],
  ['another node of the set', '10.0.0.2', '10.0.0.1', stranger, null],
  ['another proxy of the same tenant', '10.1.0.2', '10.1.0.1', stranger, null],
  ["a proxy that serves the phone's tenant", '10.1.0.2', '172.16.0.9', phone, null],
  ['another trusted source', '192.0.2.201', '192.0.2.200', stranger, null],
  ['another node of the installation', '10.2.0.1', '172.16.0.9', phone, null],
])('%s may', (_who, from, at, origin, carrierId) => {
  expect(answerTo(from, at, origin, carrierId)).toBeUndefined()
})

test.each<[string, string, string, Origin, number | null]>([
  ['a stranger in a call of a carrier', '172.16.0.66', '198.51.100.7', stranger, null],
  ['another carrier', '198.51.100.8', '203.0.113.8', stranger, 2],
  ['a trusted source, in a call of a carrier', '192.0.2.200', '198.51.100.7', stranger, null],
  ["the called carrier, in the caller's dialog", '203.0.113.8', '172.16.0.9', stranger, null],
  ['a node of another set', '10.0.0.9', '10.0.0.1', stranger, null],
])('%s may not', (_who, from, at, origin, carrierId) => {
  expect(answerTo(from, at, origin, carrierId)).toEqual({ status: 403, reason: 'Forbidden' })
})

test('who sends in a call of a phone is asked for its password', () => {
  expect(answerTo('172.16.0.66', '172.16.0.9', phone)).toMatchObject({
    status: 407,
    lines: 'Proxy-Authenticate: a\r\nProxy-Authenticate: b\r\n',
  })
  expect(answerTo('198.51.100.8', '172.16.0.9', phone)).toMatchObject({ status: 407 })
})
