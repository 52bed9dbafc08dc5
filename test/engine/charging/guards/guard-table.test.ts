import { expect, test } from 'vitest'
import { type GuardedCall, GuardTable } from '../../../../engine/charging/guards/spend-guards.ts'
import type { SpendGuard } from '../../../../schema/contracts/limits.ts'

const at = 1_000

const guard = (guardUuid: string, more: Partial<SpendGuard>): SpendGuard => ({
  guardUuid,
  scope: 'customer',
  scopeId: 1,
  prefix: '1900',
  action: 'block',
  amountMicros: 0,
  currency: null,
  per: null,
  startsAt: 0,
  expiresAt: null,
  endsCallsBefore: null,
  extension: null,
  ...more,
})

const call = (callee: string, more: Partial<GuardedCall> = {}): GuardedCall => ({
  customerId: 1,
  extensionId: null,
  tenantIds: [],
  caller: null,
  callee,
  ...more,
})

const found = (table: GuardTable, asked: GuardedCall, when = at) =>
  table.covering(asked, when).map(({ guardUuid }) => guardUuid)

test('all guards that cover a call are found, the longest prefix of each scope first', () => {
  const table = new GuardTable([
    guard('all', { prefix: '' }),
    guard('long', { prefix: '190012' }),
    guard('short', {}),
    guard('tenant', { scope: 'tenant', scopeId: 7, prefix: '19' }),
    guard('other prefix', { prefix: '1901' }),
    guard('other customer', { scopeId: 2 }),
  ])
  expect(found(table, call('+1900123', { tenantIds: [7] }))).toEqual([
    'long',
    'short',
    'all',
    'tenant',
  ])
  expect(found(table, call('4930'))).toEqual(['all'])
  expect(found(table, call('1900', { customerId: null }))).toEqual([])
})

test('a guard on an extension covers its phone, and what a PBX or proxy of its tenant brings under its number', () => {
  const extension = { number: '101', tenantId: 7 }
  const table = new GuardTable([guard('one', { scope: 'extension', scopeId: 5, extension })])
  const unpaid = { customerId: null }
  expect(found(table, call('1900', { ...unpaid, extensionId: 5 }))).toEqual(['one'])
  expect(found(table, call('1900', { ...unpaid, extensionId: 6, caller: '101' }))).toEqual([])
  const fromPbx = { ...unpaid, caller: '101', tenantIds: [7] }
  expect(found(table, call('1900', fromPbx))).toEqual(['one'])
  expect(found(table, call('1900', { ...fromPbx, tenantIds: [8] }))).toEqual([])
  expect(found(table, call('1900', { ...fromPbx, caller: null }))).toEqual([])
})
