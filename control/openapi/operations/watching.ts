import { z } from 'zod'
import { data, either, type Operations, text } from '../operation.ts'
import { count, exampleTime, moment } from './shared.ts'

const exampleCall = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'

const event = z
  .strictObject({
    id: z.string(),
    type: z.enum([
      ...(['call.started', 'call.ringing', 'call.answered', 'call.ended'] as const),
      ...(['call.transferring', 'call.transferred', 'call.transfer_failed'] as const),
      ...(['recording.started', 'recording.stopped'] as const),
      ...(['recording.ready', 'recording.failed'] as const),
      ...(['node.down', 'node.up', 'registration'] as const),
      ...(['relay.down', 'relay.up', 'relay.restarted'] as const),
      ...(['storage.failed', 'storage.recovered'] as const),
    ]),
    data: z.looseObject({ at: moment }),
  })
  .meta({ id: 'Event' })

const message = z
  .strictObject({
    at: moment,
    kind: z.literal('message'),
    direction: z.enum(['received', 'sent']),
    leg: count.describe('Index into `legs`.'),
    transport: z.string(),
    address: z
      .string()
      .describe('The remote address of a received message; the local address of a sent one.'),
    summary: z.string(),
    text: z.string().describe('The message, with credentials and media keys removed.'),
  })
  .meta({ id: 'TraceMessage' })

const decision = z
  .strictObject({
    at: moment,
    kind: z.literal('decision'),
    what: z.string(),
    detail: z.looseObject({}),
  })
  .meta({ id: 'TraceDecision' })

const trace = z.strictObject({
  call_uuid: z.string(),
  legs: z.array(z.string()).describe('Call-IDs of the legs; the first belongs to the caller leg.'),
  is_complete: z.boolean().describe('False when the first messages are no longer stored.'),
  entries: z.array(z.discriminatedUnion('kind', [message, decision])),
})

const ringing = { at: exampleTime, call_uuid: exampleCall, caller_id_number: '4930100' }

export const watchingOperations: Operations = {
  'GET /api/v1/events': {
    ...{ id: 'watchEvents', tag: 'Calls' },
    summary: 'Stream events of calls, nodes and phones (server-sent events), or list them as JSON',
    answer: either(
      data(z.strictObject({ events: z.array(event), last_event_id: z.string() }), {
        events: [{ id: 'mk1x2y3z-41', type: 'call.ringing', data: ringing }],
        last_event_id: 'mk1x2y3z-41',
      }),
      text(
        'text/event-stream',
        `id: mk1x2y3z-41\nevent: call.ringing\ndata: ${JSON.stringify(ringing)}\n\n`,
      ),
    ),
    refusals: [503],
  },
  'POST /api/v1/telephony/spy': {
    ...{ id: 'spyOnCall', tag: 'Calls' },
    summary:
      'Connect a supervisor to a live call. Requires a PBX that supports it (`spy_uri` of the set), or, to listen, a media relay.',
    body: { call_uuid: exampleCall, supervisor_extension: '100', mode: 'listen' },
    answer: data(
      z.strictObject({
        spy_uuid: z.string().describe('The call of the supervisor.'),
        call_uuid: z.string(),
        mode: z.enum(['listen', 'whisper', 'barge']),
        side: z.enum(['caller', 'callee', 'both']),
        status: z.literal('originating'),
      }),
      {
        ...{ spy_uuid: exampleCall.replace(/.$/, '2'), call_uuid: exampleCall, mode: 'listen' },
        ...{ side: 'both', status: 'originating' },
      },
      201,
    ),
    refusals: [404, 409, 501, 503],
  },
  'GET /api/v1/calls/:uuid/trace': {
    ...{ id: 'traceCall', tag: 'Calls' },
    summary:
      'Get the SIP trace of a call: the messages of all legs, and the decisions between them',
    answer: data(trace, {
      ...{ call_uuid: exampleCall, legs: ['a84b4c76e66710'], is_complete: true },
      entries: [
        {
          ...{ at: exampleTime, kind: 'decision', what: 'charged' },
          detail: { verdict: 'granted', granted_seconds: 60 },
        },
      ],
    }),
  },
}
