import { z } from 'zod'
import { bare, data, either, type Operations, text } from '../http/openapi/operation.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'

const exampleCall = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'

const event = z
  .strictObject({
    id: z.string(),
    type: z.enum([
      'call.started',
      'call.ringing',
      'call.answered',
      'call.ended',
      'call.transferring',
      'call.transferred',
      'call.transfer_failed',
      'recording.started',
      'recording.stopped',
      'recording.ready',
      'recording.failed',
      'node.down',
      'node.up',
      'registration',
      'node.lost',
      'node.recovered',
      'node.fenced',
      'relay.down',
      'relay.up',
      'relay.restarted',
      'storage.failed',
      'storage.recovered',
      'proposal.created',
      'proposal.decided',
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
      .describe('The remote address; of a message that was sent by UDP, the local one.'),
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

const peer = z
  .strictObject({
    role: z
      .enum(['caller', 'called'])
      .nullable()
      .describe(
        'Whether it sent or received the INVITE. Null when no INVITE of the leg is stored.',
      ),
    name: z
      .string()
      .nullable()
      .describe('A carrier, an extension or an agent; else as the INVITE names the peer.'),
    address: z.string().nullable().describe('Remote address of its first message.'),
  })
  .meta({ id: 'LegPeer' })

const trace = z
  .strictObject({
    call_uuid: z.string(),
    legs: z
      .array(z.string())
      .describe('Call-IDs of the legs; the first belongs to the caller leg.'),
    peers: z.array(peer).describe('Who is at the far end of each leg.'),
    is_complete: z.boolean().describe('False when the first messages are no longer stored.'),
    entries: z.array(z.discriminatedUnion('kind', [message, decision])),
  })
  .meta({ id: 'CallTrace' })

const vcon = z
  .looseObject({
    vcon: z.string(),
    uuid: z.string(),
    created_at: moment,
    subject: z.string(),
    parties: z.array(z.looseObject({})),
    dialog: z.array(z.looseObject({ type: z.enum(['recording', 'incomplete']), start: moment })),
    analysis: z.array(z.looseObject({ type: z.string(), vendor: z.string() })),
    attachments: z.array(z.looseObject({ purpose: z.string(), start: moment })),
  })
  .meta({ id: 'VCon' })

const ringing = { at: exampleTime, call_uuid: exampleCall, caller_id_number: '4930100' }

export const watchingOperations: Operations = {
  'GET /api/v1/events': {
    id: 'watchEvents',
    tag: 'Calls',
    nodes: 'all',
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
    id: 'spyOnCall',
    tag: 'Calls',
    nodes: 'call',
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
        spy_uuid: exampleCall.replace(/.$/, '2'),
        call_uuid: exampleCall,
        mode: 'listen',
        side: 'both',
        status: 'originating',
      },
      201,
    ),
    refusals: [404, 409, 501, 503],
  },
  'GET /api/v1/calls/:uuid/trace': {
    id: 'traceCall',
    tag: 'Calls',
    nodes: 'call',
    summary:
      'Get the SIP trace of a call: the messages of all legs, and the decisions between them. Without `calls:control` the tags of its dialogs are hidden.',
    answer: data(trace, {
      call_uuid: exampleCall,
      legs: ['a84b4c76e66710'],
      is_complete: true,
      peers: [{ role: 'caller', name: '4930100', address: '203.0.113.7:5060' }],
      entries: [
        {
          at: exampleTime,
          kind: 'decision',
          what: 'charged',
          detail: {
            verdict: 'granted',
            granted_seconds: 60,
            customer_id: 7,
            customer: 'acme',
            balance: '10.00',
            available: '9.40',
            currency: 'USD',
          },
        },
      ],
    }),
  },
  'GET /api/v1/calls/:uuid/trace.pcap': {
    id: 'captureCall',
    tag: 'Calls',
    nodes: 'call',
    summary:
      'Get the SIP messages of a call as a packet capture (libpcap). Each message is one UDP datagram, whatever transport carried it. Without `calls:control` the tags of its dialogs are hidden.',
    answer: text('application/vnd.tcpdump.pcap', '\u00a1\u00b2\u00c3\u00d4…'),
  },
  'GET /api/v1/calls/:uuid/vcon': {
    id: 'getVcon',
    tag: 'Calls',
    nodes: 'all',
    summary:
      'Get an ended call as a vCon (draft-ietf-vcon-vcon-core): parties, dialog, media quality, call record and SIP trace',
    answer: bare(vcon, {
      vcon: '0.4.0',
      uuid: exampleCall,
      created_at: exampleTime,
      subject: 'Call from 4930100 to 4940200',
      parties: [{ tel: 'tel:4930100' }, { tel: 'tel:4940200' }],
      dialog: [
        {
          type: 'incomplete',
          start: exampleTime,
          duration: 0,
          parties: [0, 1],
          originator: 0,
          disposition: 'busy',
        },
      ],
      analysis: [],
      attachments: [],
    }),
  },
}
