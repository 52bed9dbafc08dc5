/** `/proposals`: what agents ask people to do. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../../auth/requires.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok, offsetOf, pageMeta, pageQuery } from '../../http/envelope.ts'
import { text } from '../../http/fields.ts'
import { validate } from '../../http/validate.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import type { Decider, Proposals } from './proposals.ts'

const PATH = '/proposals'

export function proposalRoutes(proposals: Proposals, others: OtherNodes | undefined) {
  const decided = async (
    c: Context<ControlEnv>,
    uuid: string,
    decide: (decider: Decider) => ReturnType<Proposals['refuse']>,
  ): Promise<Response> => {
    const { principal, clientAddress: address, correlationId } = c.var
    const before = (await proposals.find(uuid, principal.tenantId)) ?? null
    const after = await decide({
      principal,
      via: 'api',
      address,
      correlationId,
      elsewhere: others?.of(c),
    })
    c.set('change', { before, after })
    return ok(c, after)
  }

  return new Hono<ControlEnv>()
    .get(PATH, requires('proposals:read'), validate('query', proposalQuery), async (c) => {
      const { state, ...page } = c.req.valid('query')
      const { tenantId } = c.var.principal
      const slice = { limit: page.limit, offset: offsetOf(page) }
      const found = await proposals.list({ tenantId, state }, slice)
      return ok(c, found.proposals, pageMeta(page, found.total))
    })

    .get(
      `${PATH}/:uuid`,
      requires('proposals:read'),
      validate('param', proposalPath),
      async (c) => {
        const found = await proposals.find(c.req.valid('param').uuid, c.var.principal.tenantId)
        if (found === undefined) throw notFound('Proposal')
        return ok(c, found)
      },
    )

    .post(
      `${PATH}/:uuid/approve`,
      requires('proposals:write'),
      validate('param', proposalPath),
      validate('json', approvalBody),
      (c) => {
        const { uuid } = c.req.valid('param')
        const { revision, note = null } = c.req.valid('json')
        return decided(c, uuid, (by) => proposals.approve(uuid, { revision, note }, by))
      },
    )

    .post(
      `${PATH}/:uuid/refuse`,
      requires('proposals:write'),
      validate('param', proposalPath),
      validate('json', refusalBody),
      (c) => {
        const { uuid } = c.req.valid('param')
        const { note = null } = c.req.valid('json')
        return decided(c, uuid, (by) => proposals.refuse(uuid, note, by))
      },
    )
}

const proposalQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['open', 'approved', 'refused', 'expired', 'failed']).optional(),
})

/** Any text: an invalid uuid is not found, like a uuid of another tenant. */
const proposalPath = z.strictObject({ uuid: z.string().max(100) })

const note = text(500).min(1).optional().describe('What the agent and others read beside it.')

const approvalBody = z.strictObject({
  revision: z
    .int()
    .min(1)
    .describe('`revision` of the proposal as it was read: only what it showed is approved.'),
  note,
})

const refusalBody = z.strictObject({ note })
