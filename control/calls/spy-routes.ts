/**
 * `POST /telephony/spy`: connects a supervisor to a live call. The node of the call does it, if its
 * dispatcher set has a `spy_uri`; a call whose media passes a relay can be listened to there, too.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { canSpy } from '../../schema/rules/media.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import type { ActiveCall, SpyResult } from '../../schema/contracts/calls.ts'
import type { Platform } from '../http/platform.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { atInstanceOfCall } from '../instances/peer-answers.ts'
import { domain } from '../http/fields.ts'
import { liveCallOf, exampleCallUuid } from './active-call-view.ts'
import { sourceExtension } from './originate-routes.ts'
import { extensionNumber } from '../resources/extensions.ts'
import { data } from '../http/operation.ts'

const spyBody = z.strictObject({
  call_uuid: z.guid(),
  supervisor_extension: extensionNumber.describe('Extension whose phones ring.'),
  mode: z.enum(['listen', 'whisper', 'barge']),
  side: z
    .enum(['caller', 'callee', 'both'])
    .default('both')
    .describe('The party that hears a whisper, or that is listened to.'),
  domain: domain.optional().describe('Required when several domains have this extension.'),
})

export function spyRoutes({
  store,
  engine,
  others,
}: Pick<Platform, 'store' | 'engine'> & WithOthers) {
  return new Hono<ControlEnv>().post(
    '/telephony/spy',
    describeRoute({
      id: 'spyOnCall',
      tag: 'Calls',
      instances: 'call',
      summary:
        'Connect a supervisor to a live call. Requires a PBX that supports it (`spy_uri` of ' +
        'the set), or, to listen, a media relay.',
      body: { call_uuid: exampleCallUuid, supervisor_extension: '100', mode: 'listen' },
      answer: data(
        z.strictObject({
          spy_uuid: z.string().describe('The call of the supervisor.'),
          call_uuid: z.string(),
          mode: z.enum(['listen', 'whisper', 'barge']),
          side: z.enum(['caller', 'callee', 'both']),
          status: z.literal('originating'),
        }),
        {
          spy_uuid: exampleCallUuid.replace(/.$/, '2'),
          call_uuid: exampleCallUuid,
          mode: 'listen',
          side: 'both',
          status: 'originating',
        },
        201,
      ),
      refusals: [404, 409, 501, 503],
    }),
    requires('calls:spy'),
    validate('json', spyBody),
    repeatable(),
    atInstanceOfCall({ engine, others }),
    async (c) => {
      const body = c.req.valid('json')
      const { principal } = c.var
      const call = liveCallOf(engine, body.call_uuid, principal)
      const { supervisor_extension: extension, mode, side } = body
      const template = await spyUriOf(store, call)
      const isByNode = template !== null && canSpy(template, mode, side)
      if (!isByNode && mode !== 'listen') throw unavailable(mode)
      const owner = { tenantId: call.tenantId ?? principal.tenantId, domain: principal.domain }
      const source = await sourceExtension(store, owner, extension, body.domain)
      const spyUuid = startedOrThrow(
        engine.spy({ callUuid: call.callUuid, domain: source.domain, extension, mode, side }),
        mode,
      )
      const started = { spy_uuid: spyUuid, call_uuid: call.callUuid, mode, side }
      c.set('change', { before: null, after: { ...body, ...started } })
      const status = 'originating' as const
      return created(c, `/api/v1/pbx/calls/${spyUuid}`, { ...started, status })
    },
  )
}

async function spyUriOf(store: Store, { setId }: ActiveCall): Promise<string | null> {
  if (setId === null) return null
  const query = store.db.selectFrom('dispatcher_set').select('spy_uri').where('set_id', '=', setId)
  return (await first(store, query))?.spy_uri ?? null
}

const unavailable = (mode: string): ApiError =>
  new ApiError(
    501,
    'spy_mode_unavailable',
    mode === 'listen'
      ? 'The media of this call passes no relay, and its PBX lets no supervisor listen so'
      : `The PBX of this call does not support the mode ${mode}`,
  )

function startedOrThrow(result: SpyResult, mode: string): string {
  switch (result.kind) {
    case 'originating':
      return result.callUuid
    case 'unknown_call':
      throw notFound('call')
    case 'spy_mode_unavailable':
      throw unavailable(mode)
    case 'call_not_answered':
      throw conflict(result.kind, 'The call is not answered yet')
    case 'unknown_extension':
      throw notFound('extension')
    case 'extension_unregistered':
      throw conflict(result.kind, 'No phone of the extension is registered')
    default:
      throw new ApiError(503, result.kind, 'New calls are not accepted at the moment', {
        headers: { 'Retry-After': '5' },
      })
  }
}
