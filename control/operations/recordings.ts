import { z } from 'zod'
import { data, type Operations, text } from '../http/openapi/operation.ts'

const exampleCall = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'

export const recordingOperations: Operations = {
  'POST /api/v1/telephony/recording': {
    id: 'controlRecording',
    tag: 'Calls',
    nodes: 'call',
    summary: 'Start or stop the recording of a live call',
    body: { call_uuid: exampleCall, action: 'start' },
    answer: data(
      z.strictObject({ call_uuid: z.string(), status: z.enum(['recording', 'stopped']) }),
      { call_uuid: exampleCall, status: 'recording' },
    ),
    refusals: [404, 409, 501, 503],
  },
  'GET /api/v1/calls/:uuid/recording': {
    id: 'getRecording',
    tag: 'Calls',
    summary: 'Get the recording of a call: WAV, the caller left, the callee right',
    answer: text('audio/wav', 'RIFF…'),
    hasRanges: true,
    refusals: [416, 503],
  },
  'DELETE /api/v1/calls/:uuid/recording': {
    id: 'deleteRecording',
    tag: 'Calls',
    summary: 'Delete the recording of a call',
    answer: data(z.strictObject({ call_uuid: z.string(), deleted: z.literal(true) }), {
      call_uuid: exampleCall,
      deleted: true,
    }),
  },
}
