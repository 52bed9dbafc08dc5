/** Click-to-call (SPECIFICATION.md §4.1): rings the phones of the extension first, then calls the number. */
import { Hono } from 'hono'
import { z } from 'zod'
import type { Context } from 'hono'
import { requires } from '../auth/requires.ts'
import type { OriginateResult } from '../../schema/contracts/calls.ts'
import type { Platform } from '../http/platform.ts'
import { badRequest, conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { validate } from '../http/validate.ts'
import type { Idempotency } from '../auth/idempotency.ts'
import { domain, phoneNumber, text } from '../http/fields.ts'
import { extensionNumber } from '../resources/extensions/extension-body.ts'
import { refusedStart } from './refused-start.ts'
import { mayShow, sourceExtension } from './source-extension.ts'

const number = phoneNumber({ least: 2, most: 32 })

export const originateBody = z.strictObject({
  source_extension: extensionNumber.describe('Extension whose phones ring first.'),
  destination_number: number,
  caller_id_number: number
    .optional()
    .describe('One of the tenant’s numbers. Defaults to the extension.'),
  caller_id_name: text(100).optional(),
  domain: domain.optional().describe('Required when several domains have this extension.'),
  auto_answer: z.boolean().default(false).describe('Asks the phone to answer automatically.'),
  timeout_seconds: z.int().min(5).max(180).default(60).describe('Ring timeout of the extension.'),
})

export function originateRoutes(
  { store, engine }: Pick<Platform, 'store' | 'engine'>,
  idempotency: Idempotency,
) {
  const guards = [
    requires('calls:originate'),
    validate('json', originateBody),
    idempotency.once({ operation: 'POST /api/v1/pbx/calls/originate' }),
  ] as const
  const start = async (c: Context<ControlEnv>, body: z.output<typeof originateBody>) => {
    const source = await sourceExtension(store, c.var.principal, body.source_extension, body.domain)
    const shown = body.caller_id_number
    if (shown !== undefined && !(await mayShow(store, source.tenantId, shown)))
      throw badRequest('The body is invalid', [
        { path: 'caller_id_number', message: 'is not a number of this tenant' },
      ])
    const callUuid = startedOrThrow(
      await engine.originate({
        domain: source.domain,
        extension: source.extension,
        destination: body.destination_number,
        callerNumber: shown,
        callerName: body.caller_id_name,
        autoAnswer: body.auto_answer,
        ringMs: body.timeout_seconds * 1_000,
      }),
    )
    const started = { call_uuid: callUuid, status: 'originating' as const }
    c.set('change', { before: null, after: { ...body, ...started } })
    c.header('Location', `/api/v1/pbx/calls/${callUuid}`)
    return c.json(started, 201)
  }

  return new Hono<ControlEnv>()
    .post('/pbx/calls/originate', ...guards, (c) => start(c, c.req.valid('json')))
    .post('/telephony/originate', ...guards, (c) => start(c, c.req.valid('json')))
}

export function startedOrThrow(result: OriginateResult): string {
  switch (result.kind) {
    case 'originating':
      return result.callUuid
    case 'unknown_extension':
      throw notFound('extension')
    case 'extension_unregistered':
      throw conflict(result.kind, 'No phone of the extension is registered')
    case 'denied':
      throw refusedStart(result.code)
    case 'draining':
    case 'overload':
    case 'storage_unavailable':
    case 'node_fenced':
    default:
      throw refusedStart(result.kind)
  }
}
