/** Tools for changes: undo one, propose one to a person, and find who did what. */
import { z } from 'zod'
import { nearMiss } from '../../../schema/rules/names.ts'
import { changeStates } from '../../../schema/tables/changes.ts'
import { ChangeStore, changeView, stateIn } from '../../changes/change-store.ts'
import { changeReason, dryRun } from '../../changes/change.ts'
import { undoChange as undo } from '../../changes/undo.ts'
import { ApiError } from '../../http/api-error.ts'
import { text } from '../../http/fields.ts'
import { periodInput, periodOf } from '../../observe/causes/state-history.ts'
import type { ProposalView } from '../proposals/proposal-store.ts'
import {
  defineTool,
  endOfPage,
  type ToolUse,
  MAX_ROWS,
  pageInput,
  pageOutput,
  sliceOf,
  time,
} from './tool.ts'
import { timeOrNull } from '../../http/view-fields.ts'

export const undoChange = defineTool({
  name: 'undo_change',
  title: 'Undo a change',
  description:
    'Brings back the state before a change. What it created is removed for good. ' +
    'list_changes has the change_id. Refused with ' +
    'changed_since when something changed the same target later, and with not_reversible ' +
    'for what cannot be undone. Repeating ' +
    'it has no effect. Needs the scopes of the tool that made the change, too.',
  effect: 'destroys',
  scopes: [],
  input: z.strictObject({
    change_id: z.uuid(),
    reason: changeReason,
    dry_run: dryRun,
  }),
  output: z.object({
    change_id: z.string(),
    dry_run: z.boolean(),
    changed: z
      .boolean()
      .describe('False: it was undone before. In a dry run: whether it would be.'),
    effect: z.string(),
    tool: z.string().describe('That made the change.'),
    target: z.string(),
    previous_state: z.unknown(),
    restored_state: z.unknown(),
    undone_at: time.nullable(),
  }),
  async run({ change_id: changeId, reason, dry_run: isDryRun }, use) {
    const { principal, accept } = use
    const order = { principal, changeId, reason, isDryRun, accept }
    const { entry, isChanged, effect, state } = await undo(use, order)
    const restored = stateIn(entry.state_before)
    if (isChanged && !isDryRun) use.changed({ before: state, after: restored })
    return {
      change_id: entry.change_id,
      dry_run: isDryRun,
      changed: isChanged,
      effect,
      tool: entry.tool,
      target: `${entry.target_kind} ${entry.target_id}`,
      previous_state: state,
      restored_state: restored,
      undone_at: timeOrNull(entry.undone_at),
    }
  },
})

export const listChanges = defineTool({
  name: 'list_changes',
  title: 'List changes',
  description:
    'Lists the changes in force, with change_id. Newest first: who made what, why, and ' +
    'until when; undo_change takes one back. ' +
    'state all has also those that were undone or have expired. search_audit also has what ' +
    'was refused.',
  effect: 'reads',
  scopes: ['audit:read'],
  input: z.strictObject({
    ...periodInput,
    start: periodInput.start.describe('Defaults to the beginning.'),
    actor: text(200).optional().describe('key:<uuid>, user:<name>, or the exact name of a key.'),
    target_kind: text(100).optional().describe('Such as dispatcher_node, carrier or customer.'),
    target_id: text(400).optional().describe('With target_kind.'),
    state: z.enum(['in_force', 'all']).default('in_force'),
    ...pageInput(MAX_ROWS, 20),
  }),
  output: z.object({
    changes: z.array(
      z.object({
        change_id: z.string(),
        at: time,
        state: z.enum(changeStates),
        actor: z.string(),
        actor_name: z.string().nullable(),
        tool: z.string(),
        target_kind: z.string(),
        target_id: z.string(),
        effect: z.string(),
        reason: z.string().nullable(),
        is_reversible: z.boolean(),
        expires_at: time.nullable().describe('When the platform undoes it.'),
        undone_at: time.nullable(),
      }),
    ),
    ...pageOutput,
  }),
  async run({ start: from, end: before, state, limit, cursor, ...given }, { store, principal }) {
    const { tenantId } = principal
    const filter = { ...given, tenantId, from, before }
    const { entries, total } = await new ChangeStore(store).list(
      { ...filter, ...(state === 'in_force' && { state: 'made' as const }) },
      sliceOf({ limit, cursor }),
    )
    const page = endOfPage({ limit, cursor }, entries.length, total)
    return { changes: entries.map(changeView), ...page }
  },
})

const states = ['open', 'approved', 'refused', 'expired', 'failed'] as const
const DAY_SECONDS = 86_400

const proposal = z.object({
  proposal_id: z.string(),
  state: z.enum(states),
  tool: z.string(),
  effect: z.string(),
  target: z
    .string()
    .nullable()
    .describe('What it is about, by its id: it is approved for this only.'),
  affected: z.record(z.string(), z.number()),
  risk: z.enum(['low', 'medium', 'high']),
  undo: z.string(),
  expires_at: time,
  decided_by: z.string().nullable(),
  note: z.string().nullable().describe('What the person has written.'),
  change_id: z.string().nullable().describe('Of an approved change, for undo_change.'),
  failure: z.string().nullable(),
})

export const proposeChange = defineTool({
  name: 'propose_change',
  title: 'Propose a change',
  description:
    'Asks a person to make a change. Give the tool that would make it and its arguments: ' +
    'the answer tells effect, risk and undo, as a dry run does. ' +
    'Nothing changes until a person approves; list_proposals tells what became of it. ' +
    'Also requires the scopes that read what the tool changes.',
  effect: 'proposes',
  scopes: [],
  input: z.strictObject({
    tool: text(100).min(1).describe('Name of the changing tool.'),
    arguments: z
      .record(z.string(), z.unknown())
      .describe('Its arguments, without reason and dry_run.'),
    reason: changeReason,
    expires_in: z
      .int()
      .min(300)
      .max(7 * DAY_SECONDS)
      .default(DAY_SECONDS)
      .describe('Seconds until the proposal expires.'),
  }),
  output: proposal.extend({ is_new: z.boolean().describe('False: it was proposed before.') }),
  async run({ tool: name, arguments: given, reason, expires_in }, use) {
    const tool = use.proposals.tool(name)
    if (tool === undefined) throw notProposable(name, use)
    const order = { tool: name, arguments: given, reason, expiresInSeconds: expires_in }
    const made = await use.proposals.propose(order, tool, {
      principal: use.principal,
      peers: use.peers,
    })
    return { ...viewOf(made.proposal), is_new: made.isNew }
  },
})

export const listProposals = defineTool({
  name: 'list_proposals',
  title: 'List proposals',
  description: 'Lists proposed changes, and what people decided. Newest first.',
  effect: 'reads',
  scopes: ['proposals:read'],
  input: z.strictObject({
    state: z.enum(states).optional().describe('Defaults to all.'),
    ...pageInput(MAX_ROWS, 20),
  }),
  output: z.object({ proposals: z.array(proposal), ...pageOutput }),
  async run({ state, ...page }, { proposals, principal: { tenantId } }) {
    const found = await proposals.list({ tenantId, state }, sliceOf(page))
    const listed = found.proposals.map(viewOf)
    return { proposals: listed, ...endOfPage(page, listed.length, found.total) }
  },
})

const viewOf = (view: ProposalView) => ({ ...view, affected: { ...view.affected } })

function notProposable(name: string, { proposals }: ToolUse): ApiError {
  const meant = nearMiss(name, new Set(proposals.toolNames()))
  return new ApiError(
    404,
    'unknown_tool',
    `${JSON.stringify(name)} is no tool that changes ` +
      `something${meant === undefined ? '' : `: did you mean ${meant}?`}`,
  )
}

export const searchAudit = defineTool({
  name: 'search_audit',
  title: 'Search the audit log',
  description:
    'Finds changes through the API and calls of tools, newest first. Each says who did ' +
    'what from which address, and whether it was refused. changes_only leaves out what ' +
    'only read.',
  effect: 'reads',
  scopes: ['audit:read'],
  input: z.strictObject({
    ...periodInput,
    actor: text(200).optional().describe('key:<uuid>, user:<name>, or the exact name of a key.'),
    action: text(200).optional().describe('Its start, such as "DELETE" or "tool set_".'),
    target: text(200).optional().describe('Part of the path or of the arguments.'),
    outcome: z.enum(['success', 'refused', 'failed']).optional(),
    changes_only: z.boolean().default(false),
    ...pageInput(100, 15),
  }),
  output: z.object({
    entries: z.array(
      z.object({
        at: time,
        actor: z.string(),
        actor_name: z.string().nullable(),
        address: z.string(),
        action: z.string(),
        target: z.string(),
        outcome: z.enum(['success', 'refused', 'failed']),
        code: z.string().nullable(),
        correlation_id: z.string(),
        change_id: z.string().nullable().describe('Of the change that it made, for undo_change.'),
        reason: z.string().nullable(),
      }),
    ),
    ...pageOutput,
  }),
  async run({ start, end, changes_only, limit, cursor, ...filter }, { audit, now, principal }) {
    const period = periodOf({ start, end }, now(), { longestDays: 400, usualDays: 1 })
    const asked = { ...filter, ...period, tenantId: principal.tenantId, changes: changes_only }
    const { entries, total } = await audit.list(asked, sliceOf({ limit, cursor }))
    return {
      entries: entries.map((entry) => ({ ...entry, target: shortened(entry.target) })),
      ...endOfPage({ limit, cursor }, entries.length, total),
    }
  },
})

const shortened = (target: string): string =>
  target.length <= 160 ? target : `${target.slice(0, 159)}…`
