import { z } from 'zod'
import { changeOutput } from '../changes/change.ts'
import { changeStates } from '../../schema/tables/changes.ts'
import { data, list, type Operations } from '../http/openapi/operation.ts'
import { exampleKey, key } from './access.ts'
import { exampleTime, moment } from '../http/view-fields.ts'

const state = z.unknown().describe('JSON; null: it is not there.')

const change = z
  .strictObject({
    change_id: z.string(),
    at: moment,
    state: z
      .enum(changeStates)
      .describe(
        '`made`: it stands. `superseded`: its time ran out after a later change. `unconfirmed`: the process ended while it was made.',
      ),
    actor: z.string().describe('As in the audit log.'),
    actor_name: z.string().nullable(),
    tenant_id: z.int().nullable(),
    tool: z.string(),
    target_kind: z.string(),
    target_id: z.string(),
    reason: z.string().nullable(),
    effect: z.string(),
    before: state,
    after: state,
    is_reversible: z.boolean(),
    is_state_kept: z
      .boolean()
      .describe(
        'False: `before` and `after` have the names of the fields, and no values: they were too long, or have given way to later changes.',
      ),
    expires_at: moment.nullable().describe('When the platform undoes it.'),
    undone_at: moment.nullable(),
    undone_by: z.string().nullable(),
    undo_reason: z.string().nullable(),
    proposal_id: z.string().nullable(),
  })
  .meta({ id: 'Change' })

const undone = z
  .strictObject({
    dry_run: z.boolean(),
    changed: z
      .boolean()
      .describe('False: it was undone before. In a dry run: whether it would be.'),
    effect: z.string(),
    change,
  })
  .meta({ id: 'UndoneChange' })

const changedKey = z.strictObject({ ...changeOutput, key }).meta({ id: 'ChangedKey' })

const exampleId = '3c1f2a52-8c0f-4a86-9f53-2d3f9d3f7c10'
const exampleChange = {
  change_id: exampleId,
  at: exampleTime,
  state: 'made',
  tool: 'set_dispatcher_state',
  actor: 'key:9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
  actor_name: 'night watch',
  tenant_id: null,
  target_kind: 'dispatcher_node',
  target_id: '1/sip:10.0.0.5:5060;transport=udp',
  reason: 'one-way audio',
  effect:
    'Node "sip:10.0.0.5:5060;transport=udp" of set 1 goes from active to inactive: its live calls continue, and it gets no new ones.',
  before: 'active',
  after: 'inactive',
  is_reversible: true,
  expires_at: null,
  is_state_kept: true,
  undone_at: null,
  undone_by: null,
  undo_reason: null,
  proposal_id: null,
}
const exampleUndone = {
  ...exampleChange,
  state: 'undone',
  undone_at: exampleTime,
  undone_by: 'user:ada',
  undo_reason: 'repaired',
}
const exampleSuspended = {
  dry_run: false,
  changed: true,
  change_id: exampleId,
  effect:
    'The key "monitoring" is suspended until it is resumed: its requests are rejected from now on.',
  affected: { requests_per_hour: 12 },
  previous_state: { suspended_at: null, suspended_by: null, revoked_at: null },
  undo: `undo_change with change_id ${exampleId}`,
  expires_at: null,
  key: { ...exampleKey, state: 'suspended', suspended_at: exampleTime },
}

export const changeOperations: Operations = {
  'GET /api/v1/changes': {
    id: 'listChanges',
    tag: 'Changes',
    summary: 'List changes, newest first',
    answer: list(change, exampleChange),
  },
  'GET /api/v1/changes/:change_id': {
    id: 'getChange',
    tag: 'Changes',
    summary: 'Get a change',
    answer: data(change, exampleChange),
  },
  'POST /api/v1/changes/:change_id/undo': {
    id: 'undoChange',
    tag: 'Changes',
    summary: 'Undo a change. Requires the scopes of the tool that made it, too.',
    body: { reason: 'repaired' },
    answer: data(undone, {
      dry_run: false,
      changed: true,
      effect: `The dispatcher_node "1/sip:10.0.0.2:5060" gets back the state that it had before change ${exampleId} (set_dispatcher_state), whose effect was: Node "sip:10.0.0.2:5060" of set 1 goes from active to inactive: its live calls continue, and it gets no new ones.`,
      change: exampleUndone,
    }),
    refusals: [409],
  },
  'POST /api/v1/application-keys/:uuid/suspend': {
    id: 'suspendApplicationKey',
    tag: 'Keys',
    summary: 'Suspend a key. Takes effect immediately, and can be undone.',
    body: { reason: 'it may have leaked', duration: 3_600 },
    answer: data(changedKey, exampleSuspended),
    refusals: [409],
  },
  'POST /api/v1/application-keys/:uuid/resume': {
    id: 'resumeApplicationKey',
    tag: 'Keys',
    summary: 'Resume a suspended key',
    body: { reason: 'it has not leaked' },
    answer: data(changedKey, {
      ...exampleSuspended,
      effect: 'The key "monitoring" is resumed: its requests are accepted from now on.',
      key: exampleKey,
    }),
    refusals: [409],
  },
}
