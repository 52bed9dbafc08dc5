import { z } from 'zod'
import { changeOutput } from '../changes/change.ts'
import { guardView } from '../resources/guards/guard-view.ts'
import { data, list, type Operations } from '../http/openapi/operation.ts'
import { exampleTime } from '../http/view-fields.ts'

const view = guardView.meta({ id: 'SpendGuard' })

const changed = z
  .strictObject({
    guard: view,
    ...changeOutput,
  })
  .meta({ id: 'SpendGuardChange' })

const exampleGuard = {
  guard_id: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
  scope: 'customer',
  scope_id: 7,
  name: 'acme',
  prefix: '1900',
  action: 'cap',
  amount_exact: '5.00',
  currency: 'USD',
  per: 'duration',
  used_exact: '1.20',
  left_exact: '3.80',
  state: 'active',
  set_by: 'platform',
  reason: 'many calls to premium numbers',
  created_by: 'user:admin',
  created_at: exampleTime,
  expires_at: '2026-01-01T08:00:00.000Z',
  ends_calls_before: null,
  removed_at: null,
}

const exampleChange = {
  guard: exampleGuard,
  dry_run: false,
  changed: true,
  change_id: '9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
  effect:
    'Calls of customer "acme" to numbers that begin with "1900" may cost 5.00 USD in all until 2026-01-01T08:00:00.000Z; beyond, they are refused or ended.',
  affected: { live_calls: 2, calls_last_hour: 15, spent_last_hour: 16.5 },
  previous_state: null,
  expires_at: '2026-01-01T08:00:00.000Z',
  undo: 'undo_change with change_id 9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
}

const tag = 'Spend guards'

export const spendGuardOperations: Operations = {
  'GET /api/v1/spend-guards': {
    id: 'listSpendGuards',
    tag,
    summary: 'List spend guards, newest first',
    answer: list(view, exampleGuard),
  },
  'GET /api/v1/spend-guards/:guard_id': {
    id: 'getSpendGuard',
    tag,
    summary: 'Get a spend guard',
    answer: data(view, exampleGuard),
    refusals: [404],
  },
  'POST /api/v1/spend-guards': {
    id: 'setSpendGuard',
    tag,
    summary:
      'Stop (block) or limit (cap) calls to a prefix, from the next call on all nodes. Repeating it changes nothing.',
    body: {
      customer: 'acme',
      prefix: '1900',
      action: 'cap',
      amount: '5.00',
      duration: 28_800,
      reason: 'many calls to premium numbers',
    },
    answer: data(changed, exampleChange, 201),
    refusals: [409],
  },
  'DELETE /api/v1/spend-guards/:guard_id': {
    id: 'removeSpendGuard',
    tag,
    summary: 'Remove a spend guard',
    answer: data(changed, exampleChange),
    refusals: [404, 409],
  },
}
