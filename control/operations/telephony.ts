import { z } from 'zod'
import { liveAgentView } from '../resources/ai-agents.ts'
import { extensionDetails, extensionShape } from '../resources/extensions.ts'
import { directions, dispositions, hangupParties } from '../../schema/contracts/field-values.ts'
import type { ActiveCallView } from '../calls/active-call-view.ts'
import { bare, data, list, type Operation, type Operations } from '../http/openapi/operation.ts'
import { deleted, resourceOperations } from '../http/openapi/resource-operations.ts'
import {
  count,
  decimal,
  denialTextField,
  exampleMedia,
  exampleTime,
  moment,
} from '../http/view-fields.ts'

const callUuid = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'
const otherUuid = '7d3f4d0e-58f1-4a0b-8d2e-3f2d1c9b8a77'

const exampleExtension = {
  id: 1,
  extension: '100',
  display_name: 'Reception',
  voicemail_enabled: true,
  status: 'registered',
  user_agent: 'Phone/1.0',
}

const exampleDetails = {
  id: 1,
  extension: '100',
  domain: 'acme.example',
  tenant: 'acme',
  display_name: 'Reception',
  email: null,
  customer_id: null,
  customer: null,
  voicemail_enabled: true,
  call_recording: 'always',
  recording_active: false,
  ...exampleMedia,
  status: 'registered',
  contacts: [
    {
      uri: 'sip:100@192.0.2.9:5060',
      user_agent: 'Phone/1.0',
      source: 'udp/192.0.2.9:5060',
      node: 'sbc-1',
      expires_at: exampleTime,
    },
  ],
  created_at: exampleTime,
  updated_at: exampleTime,
}

const pageOfExtensions = z.strictObject({
  data: z.array(extensionShape),
  total: count,
  meta: z.strictObject({ page: z.int(), limit: z.int(), total: count }),
})

const extensions: Operations = {
  'POST /api/v1/pbx/extensions': {
    id: 'createExtension',
    tag: 'Extensions',
    summary: 'Create an extension',
    body: { extension: '100', password: 'correct horse', display_name: 'Reception' },
    answer: bare(extensionShape, exampleExtension, 201),
    refusals: [409],
  },
  'GET /api/v1/pbx/extensions': {
    id: 'listExtensions',
    tag: 'Extensions',
    summary: 'List extensions',
    answer: bare(pageOfExtensions, {
      data: [exampleExtension],
      total: 1,
      meta: { page: 1, limit: 50, total: 1 },
    }),
  },
  'GET /api/v1/pbx/extensions/:id': {
    id: 'getExtension',
    tag: 'Extensions',
    summary: 'Get an extension',
    answer: bare(extensionShape, exampleExtension),
  },
  'GET /api/v1/pbx/extensions/:id/details': {
    id: 'getExtensionDetails',
    tag: 'Extensions',
    summary: 'Get an extension with its registered phones',
    answer: data(extensionDetails, exampleDetails),
  },
  'GET /api/v1/pbx/extensions/details': {
    id: 'listExtensionDetails',
    tag: 'Extensions',
    summary: 'List extensions with all their fields and their registered phones',
    answer: list(extensionDetails, exampleDetails),
  },
  'DELETE /api/v1/pbx/extensions/:id/registrations': {
    id: 'deleteRegistration',
    tag: 'Extensions',
    summary: 'Remove the registration of one phone; it may register again',
    answer: data(extensionDetails, exampleDetails),
  },
  'PATCH /api/v1/pbx/extensions/:id': {
    id: 'updateExtension',
    tag: 'Extensions',
    summary: 'Update an extension',
    body: { display_name: 'Front desk' },
    answer: bare(extensionShape, exampleExtension),
    refusals: [409],
  },
  'DELETE /api/v1/pbx/extensions/:id': {
    id: 'deleteExtension',
    tag: 'Extensions',
    summary: 'Delete an extension',
    answer: bare(deleted, { id: 1, deleted: true }),
    refusals: [409],
  },
}

const disposition = z.enum(dispositions)
const hangupBy = z.enum(hangupParties)
const direction = z.enum(directions)

const transfer = z
  .strictObject({
    state: z.enum(['transferring', 'transferred', 'failed']),
    call_uuid: z
      .string()
      .describe(
        'The related call: the call to the transfer destination, or the call being transferred.',
      ),
    destination: z.string(),
    sip_code: z.int().nullable().describe('The SIP status with which the transfer failed.'),
  })
  .nullable()
  .describe('Null when the call was not transferred.')

const price = z
  .strictObject({
    currency: z.string(),
    connect_fee: decimal,
    first_increment: count.describe('Seconds.'),
    first_rate_per_minute: decimal,
    increment: count.describe('Seconds.'),
    rate_per_minute: decimal,
    decimals: count.describe('To which the price is rounded up.'),
  })
  .describe(
    'Connect fee, first increment, then each further increment begun. Null when the call is free, or another OCS charges it.',
  )
  .meta({ id: 'CallPrice' })

const activeCall: z.ZodType<ActiveCallView> = z
  .strictObject({
    uuid: z.string().describe('Same value as `call_uuid`.'),
    call_uuid: z.string(),
    caller_id_number: z.string(),
    destination_number: z.string(),
    duration_seconds: count.describe('Seconds since the answer, or since the start before it.'),
    state: z.enum(['DIALING', 'RINGING', 'EARLY', 'ACTIVE', 'HELD']),
    direction,
    start_stamp: moment,
    answer_stamp: moment.nullable(),
    set_id: z.int().nullable(),
    node: z.string().nullable(),
    instance: z.string().describe('Node of this platform that has the call.'),
    node_state: z
      .enum(['active', 'probing', 'inactive'])
      .nullable()
      .describe('`inactive` when the node is being drained. The call continues until it ends.'),
    carrier: z.string().nullable(),
    caller_address: z.string().nullable().describe('Remote address of the caller leg.'),
    callee_address: z
      .string()
      .nullable()
      .describe('Remote address of the callee leg. Null before the answer.'),
    customer_id: z.int().nullable(),
    transfer,
    recording: z.boolean().describe('Whether the call is being recorded.'),
    cost: z
      .number()
      .nullable()
      .describe('Cost if the call ended now. Null when another OCS charges the call.'),
    cost_exact: decimal.nullable(),
    currency: z.string().nullable(),
    price: price.nullable(),
  })
  .meta({ id: 'ActiveCall' })

const originated = z
  .strictObject({ call_uuid: z.string(), status: z.literal('originating') })
  .meta({ id: 'OriginatedCall' })

const callStatus = z
  .strictObject({
    call_uuid: z.string(),
    status: z.enum([
      'originating',
      'ringing',
      'answered',
      'completed',
      'busy',
      'no_answer',
      'failed',
      'canceled',
    ]),
    caller_id_number: z.string(),
    destination_number: z.string(),
    direction,
    start_stamp: moment,
    answer_stamp: moment.nullable(),
    end_stamp: moment.nullable(),
    billsec: count.nullable(),
    disposition: disposition.nullable(),
    sip_code: z.int().nullable(),
    hangup_cause: z.string().nullable(),
    hangup_by: hangupBy.nullable(),
    denial_code: z.string().nullable(),
    denial_text: denialTextField,
    transfer,
  })
  .meta({ id: 'CallStatus' })

const transferred = z
  .strictObject({
    call_uuid: z.string(),
    transfer_uuid: z.string().describe('The call to the transfer destination.'),
    destination: z.string(),
    leg: z.enum(['caller', 'callee']),
    mode: z.literal('blind'),
    status: z.literal('transferring'),
  })
  .meta({ id: 'TransferredCall' })

const transferCall = (id: string, summary: string, body: object): Operation => ({
  id,
  tag: 'Calls',
  summary,
  body,
  answer: data(
    transferred,
    {
      call_uuid: callUuid,
      transfer_uuid: otherUuid,
      destination: '101',
      leg: 'caller',
      mode: 'blind',
      status: 'transferring',
    },
    202,
  ),
  nodes: 'call',
  refusals: [402, 404, 409, 503],
})

const originate = (id: string, summary: string): Operation => ({
  id,
  tag: 'Calls',
  summary,
  body: { source_extension: '100', destination_number: '4940200' },
  answer: bare(originated, { call_uuid: callUuid, status: 'originating' }, 201),
  refusals: [402, 404, 409, 503],
})

const calls: Operations = {
  'POST /api/v1/pbx/calls/originate': originate(
    'originateCall',
    'Start a call: ring an extension, then dial the destination',
  ),
  'POST /api/v1/telephony/originate': originate(
    'originateTelephonyCall',
    'Alias of `POST /api/v1/pbx/calls/originate`',
  ),
  'GET /api/v1/pbx/calls/:uuid': {
    id: 'getCall',
    tag: 'Calls',
    summary: 'Get the state of a live call, or how a call ended',
    answer: data(callStatus, {
      call_uuid: callUuid,
      status: 'completed',
      caller_id_number: '4930100',
      destination_number: '4940200',
      direction: 'outbound',
      start_stamp: exampleTime,
      answer_stamp: exampleTime,
      end_stamp: exampleTime,
      billsec: 20,
      disposition: 'ANSWERED',
      sip_code: 200,
      hangup_cause: 'NORMAL_CLEARING',
      hangup_by: 'caller',
      denial_code: null,
      denial_text: null,
      transfer: null,
    }),
    nodes: 'call',
  },
  'GET /api/v1/pbx/calls/active': {
    id: 'listActiveCalls',
    tag: 'Calls',
    summary: 'List live calls',
    nodes: 'all',
    answer: bare(z.array(activeCall), [
      {
        uuid: callUuid,
        call_uuid: callUuid,
        caller_id_number: '4930100',
        destination_number: '4940200',
        duration_seconds: 12,
        state: 'ACTIVE',
        direction: 'inbound',
        start_stamp: exampleTime,
        answer_stamp: exampleTime,
        set_id: 1,
        node: 'sip:10.0.0.11:5060;transport=udp',
        node_state: 'active',
        carrier: null,
        instance: 'sbc-1',
        caller_address: '203.0.113.7:5060',
        callee_address: '10.0.0.11:5060',
        customer_id: 7,
        transfer: null,
        recording: false,
        cost: 0.6,
        cost_exact: '0.60',
        currency: 'USD',
        price: {
          currency: 'USD',
          connect_fee: '0.00',
          first_increment: 60,
          first_rate_per_minute: '0.60',
          increment: 1,
          rate_per_minute: '0.60',
          decimals: 4,
        },
      },
    ]),
  },
  'POST /api/v1/telephony/hangup': {
    id: 'hangUpCall',
    tag: 'Calls',
    summary: 'Hang up a live call',
    body: { call_uuid: callUuid, cause: 16 },
    answer: data(z.strictObject({ call_uuid: z.string(), status: z.literal('ending') }), {
      call_uuid: callUuid,
      status: 'ending',
    }),
    nodes: 'call',
    refusals: [404, 409],
  },
  'POST /api/v1/telephony/transfer': transferCall(
    'transferCall',
    'Transfer one party of an answered call',
    { call_uuid: callUuid, destination: '101' },
  ),
  'POST /api/v1/pbx/calls/:uuid/transfer': transferCall(
    'transferCallByPath',
    'Alias of `POST /api/v1/telephony/transfer`',
    { destination: '101' },
  ),
}

const agents = resourceOperations({
  path: '/api/v1/telephony/ai-agents',
  noun: 'AI agent',
  plural: 'AI agents',
  tag: 'Agents',
  nodes: 'all',
  view: liveAgentView,
  example: {
    id: 1,
    name: 'concierge',
    tenant: null,
    extension: '700',
    sip_uri: 'sip:concierge@agents.example',
    description: null,
    max_calls: 10,
    ...exampleMedia,
    strip_headers: [],
    is_active: true,
    created_at: exampleTime,
    updated_at: exampleTime,
    active_calls: 0,
  },
  body: { name: 'concierge', extension: '700', sip_uri: 'sip:concierge@agents.example' },
  patch: { max_calls: 20 },
})

export const telephonyOperations: Operations = { ...extensions, ...calls, ...agents }
