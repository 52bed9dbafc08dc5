/** What is asked before something is done to a live call. */
import type { ComponentChildren } from 'preact'
import { send } from '../api/api.ts'
import type { ActiveCall } from '../api/views.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { Text } from '../parts/text.tsx'
import { visibleText } from '../parts/visible-text.ts'

interface CallDialogProps {
  readonly call: ActiveCall
  /** `done`: what has been done, in words. */
  readonly onClose: (done?: string) => void
}

const Parties = ({ call }: { call: ActiveCall }) => (
  <>
    <Text value={call.caller_id_number} max={40} /> to{' '}
    <Text value={call.destination_number} max={40} />
  </>
)

export function HangUp({ call, onClose }: CallDialogProps) {
  return (
    <Dialog
      title="Hang up this call?"
      action="Hang up"
      isDangerous
      onConfirm={() => send('POST', '/telephony/hangup', { call_uuid: call.call_uuid })}
      onClose={() => onClose()}
    >
      <p>
        <Parties call={call} />. Both sides are disconnected at once, and the call is charged until
        now.
      </p>
    </Dialog>
  )
}

export function Transfer({ call, onClose }: CallDialogProps) {
  const ask = (form: FormData) =>
    send('POST', '/telephony/transfer', {
      call_uuid: call.call_uuid,
      leg: textIn(form, 'leg'),
      destination: textIn(form, 'destination'),
    })
  return (
    <Dialog
      title="Transfer this call?"
      action="Transfer"
      onConfirm={ask}
      onClose={(isDone) => onClose(isDone ? 'The transfer has begun.' : undefined)}
    >
      <p>
        <Parties call={call} />. The other party stays connected until the destination answers, then
        it is released.
      </p>
      <Field title="Destination">
        <input name="destination" required minLength={2} maxLength={32} autoComplete="off" />
      </Field>
      <Field title="Who is transferred">
        <select name="leg">
          <option value="caller">the caller, {visibleText(call.caller_id_number, 40)}</option>
          <option value="callee">
            the called party, {visibleText(call.destination_number, 40)}
          </option>
        </select>
      </Field>
    </Dialog>
  )
}

export function Listen({ call, onClose }: CallDialogProps) {
  const ask = (form: FormData) => {
    const domain = textIn(form, 'domain')
    return send('POST', '/telephony/spy', {
      call_uuid: call.call_uuid,
      mode: textIn(form, 'mode'),
      supervisor_extension: textIn(form, 'extension'),
      ...(domain !== '' && { domain }),
    })
  }
  return (
    <Dialog
      title="Listen to this call?"
      action="Listen"
      onConfirm={ask}
      onClose={(isDone) => onClose(isDone ? 'The phones of the supervisor ring.' : undefined)}
    >
      <p>
        <Parties call={call} />. The phones of the extension ring; who answers is connected to the
        call. It is in the audit log.
      </p>
      <Field title="Extension of the supervisor">
        <input name="extension" required maxLength={32} autoComplete="off" />
      </Field>
      <Field title="Domain, where several have this extension">
        <input name="domain" maxLength={253} autoComplete="off" />
      </Field>
      <Field title="The supervisor">
        <select name="mode">
          <option value="listen">only listens</option>
          <option value="whisper">is heard by one side</option>
          <option value="barge">is heard by both sides</option>
        </select>
      </Field>
    </Dialog>
  )
}

const Field = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <label>
    {title} {children}
  </label>
)
