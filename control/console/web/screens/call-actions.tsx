/** The actions on a live call, and their dialogs. */
import { send } from '../api/api.ts'
import type { ShownCall } from '../api/views.ts'
import { Choice, Field, textIn } from '../parts/form.tsx'
import type { Action } from '../parts/list.tsx'
import { Text } from '../parts/text.tsx'
import { visibleText } from '../parts/visible-text.ts'

const Parties = ({ call }: { call: ShownCall }) => (
  <>
    <Text value={call.caller_id_number} max={40} /> to{' '}
    <Text value={call.destination_number} max={40} />
  </>
)

export const hangUp = (call: ShownCall): Action => ({
  text: 'Hang up',
  title: 'Hang up this call?',
  isDangerous: true,
  ask: (
    <p>
      <Parties call={call} />. Both sides are disconnected at once, and the call is charged until
      now.
    </p>
  ),
  onConfirm: () => send('POST', '/telephony/hangup', { call_uuid: call.call_uuid }),
})

export const transfer = (call: ShownCall): Action => ({
  text: 'Transfer',
  title: 'Transfer this call?',
  done: 'The transfer has begun.',
  ask: (
    <>
      <p>
        <Parties call={call} />. The other party stays connected until the destination answers, then
        it is released.
      </p>
      <Field
        label="Destination"
        name="destination"
        required
        minLength={2}
        maxLength={32}
        autoComplete="off"
      />
      <Choice
        label="Who is transferred"
        name="leg"
        value="caller"
        options={{
          caller: `the caller, ${visibleText(call.caller_id_number, 40)}`,
          callee: `the called party, ${visibleText(call.destination_number, 40)}`,
        }}
      />
    </>
  ),
  onConfirm: (form) =>
    send('POST', '/telephony/transfer', {
      call_uuid: call.call_uuid,
      leg: textIn(form, 'leg'),
      destination: textIn(form, 'destination'),
    }),
})

export const listen = (call: ShownCall): Action => ({
  text: 'Listen',
  label: 'Listen to',
  title: 'Listen to this call?',
  done: 'The phones of the supervisor ring.',
  ask: (
    <>
      <p>
        <Parties call={call} />. The phones of the extension ring; who answers is connected to the
        call. It is in the audit log.
      </p>
      <Field
        label="Extension of the supervisor"
        name="extension"
        required
        maxLength={32}
        autoComplete="off"
      />
      <Field
        label="Domain, where several have this extension"
        name="domain"
        maxLength={253}
        autoComplete="off"
      />
      <Choice
        label="The supervisor"
        name="mode"
        value="listen"
        options={{
          listen: 'only listens',
          whisper: 'is heard by one side',
          barge: 'is heard by both sides',
        }}
      />
    </>
  ),
  onConfirm: (form) => {
    const domain = textIn(form, 'domain')
    return send('POST', '/telephony/spy', {
      call_uuid: call.call_uuid,
      mode: textIn(form, 'mode'),
      supervisor_extension: textIn(form, 'extension'),
      ...(domain !== '' && { domain }),
    })
  },
})
