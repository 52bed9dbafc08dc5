import { expect, test } from 'vitest'
import { BindingTable } from '../../../engine/registrar/binding-table.ts'
import type { Binding } from '../../../engine/registrar/bindings.ts'
import { ManualTime } from '../../support/manual-time.ts'

const startedAt = 1_700_000_000_000

/** The table of node `here`, as time passes. */
function tableOf() {
  const time = new ManualTime(startedAt)
  const unsure: number[] = []
  const lapsed: number[] = []
  const table = new BindingTable({
    now: time.now,
    schedule: time.schedule,
    keepAlive: () => undefined,
    isOwn: ({ node }) => node === 'here',
    onLapsed: ({ extensionId }) => void lapsed.push(extensionId),
    onUnsure: (extensionId) => void unsure.push(extensionId),
    onExpired: () => undefined,
  })
  const bind = (extensionId: number, node: string, seconds: number): void => {
    const source = { protocol: 'udp', address: '203.0.113.7', port: 5_060 }
    const binding: Binding = {
      contact: `sip:${extensionId}@203.0.113.7`,
      instance: null,
      regId: null,
      q: 1_000,
      callId: 'r',
      cseq: 1,
      path: [],
      userAgent: '',
      source,
      node,
      registeredAt: startedAt,
      expiresAt: startedAt + seconds * 1_000,
    }
    const extension = String(extensionId)
    const home = { domain: 'acme.example', extension, extensionId, tenantId: 3, secret: '' }
    table.set({ ...home, bindings: [binding] })
  }
  return { time, table, bind, unsure, lapsed }
}

test('phones of another node that expire in the same second are each asked about twice, and then are gone', () => {
  const { time, table, bind, unsure, lapsed } = tableOf()
  for (const extensionId of [101, 102, 103]) bind(extensionId, 'there', 60)
  time.advance(54_000)
  expect(unsure).toEqual([])
  time.advance(2_000)
  expect(unsure).toEqual([101, 102, 103])
  time.advance(6_000)
  expect(unsure.toSorted((one, other) => one - other)).toEqual([101, 101, 102, 102, 103, 103])
  expect(lapsed).toEqual([])
  expect([...table.all()]).toEqual([])
})
