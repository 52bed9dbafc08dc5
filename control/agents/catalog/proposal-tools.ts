/** Tools with which an agent asks a person to make a change, and reads what the person has decided. */
import { z } from 'zod'
import { nearMiss } from '../../../schema/rules/near-miss.ts'
import { ApiError } from '../../http/api-error.ts'
import { text } from '../../http/fields.ts'
import type { ProposalView } from '../proposals/proposal-view.ts'
import { changeReason } from '../../changes/change.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { MAX_ROWS, time } from './shapes.ts'

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
    'Asks a person to make a change. Give the tool that would make it and its arguments: the answer tells effect, risk and undo, as a dry run does. ' +
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
      elsewhere: use.elsewhere,
    })
    return { ...viewOf(made.proposal), is_new: made.isNew }
  },
})

export const listProposals = defineTool({
  name: 'list_proposals',
  title: 'List proposals',
  description:
    'Lists the changes that agents have proposed, newest first, and what people decided.',
  effect: 'reads',
  scopes: ['proposals:read'],
  input: z.strictObject({
    state: z.enum(states).optional().describe('Defaults to all.'),
    limit: z.int().min(1).max(MAX_ROWS).default(20),
  }),
  output: z.object({ proposals: z.array(proposal), total: z.int() }),
  async run({ state, limit }, { proposals, principal: { tenantId } }) {
    const found = await proposals.list({ tenantId, state }, { limit, offset: 0 })
    return { proposals: found.proposals.map(viewOf), total: found.total }
  },
})

const viewOf = (view: ProposalView) => ({ ...view, affected: { ...view.affected } })

function notProposable(name: string, { proposals }: ToolUse): ApiError {
  const meant = nearMiss(name, new Set(proposals.toolNames()))
  return new ApiError(
    404,
    'unknown_tool',
    `${JSON.stringify(name)} is no tool that changes something${meant === undefined ? '' : `: did you mean ${meant}?`}`,
  )
}
