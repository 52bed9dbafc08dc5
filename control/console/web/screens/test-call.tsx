/** A test call through one carrier: asks for a phone and a number, then says what happens. */
import { useSignal } from '@preact/signals'
import { send } from '../api/api.ts'
import type { Carrier, TestCall } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { Text } from '../parts/text.tsx'

interface Started {
  readonly extension: string
  readonly number: string
  readonly call: TestCall
}

export function TestCallButton({ carrier }: { carrier: Carrier }) {
  const isOpen = useSignal(false)
  const started = useSignal<Started | undefined>(undefined)
  if (!may('calls:originate')) return null
  const close = () => (isOpen.value = false)
  return (
    <>
      <p>
        <button type="button" class="primary" onClick={() => (isOpen.value = true)}>
          Test call
        </button>
      </p>
      <p role="status" class="done">
        {started.value && <Result {...started.value} />}
      </p>
      {isOpen.value && (
        <TestCallForm
          carrier={carrier}
          onStart={(begun) => (started.value = begun)}
          onClose={close}
        />
      )}
    </>
  )
}

const Result = ({ extension, number, call }: Started) => (
  <>
    The phone of <Text value={extension} max={40} /> rings now. When it is picked up, the carrier
    gets the call to <Text value={number} max={40} />, which ends after {call.max_seconds} s.{' '}
    <a href={pathOf('calls', call.call_uuid)}>What becomes of the call</a>
  </>
)

interface FormProps {
  readonly carrier: Carrier
  readonly onStart: (started: Started) => void
  readonly onClose: () => void
}

function TestCallForm({ carrier, onStart, onClose }: FormProps) {
  return (
    <Dialog
      title="Place a test call?"
      action="Call"
      onConfirm={async (form) => {
        const [extension, number] = [textIn(form, 'extension'), textIn(form, 'number')]
        const domain = textIn(form, 'domain')
        const answer = await send<TestCall>('POST', `/routing/carriers/${carrier.id}/test-call`, {
          source_extension: extension,
          destination_number: number,
          ...(domain !== '' && { domain }),
        })
        if (answer.kind === 'ok') onStart({ extension, number, call: answer.data })
        return answer
      }}
      onClose={onClose}
    >
      <p>
        The call goes through <Text value={carrier.name} max={60} /> only, and is charged like any
        call of the extension.
      </p>
      <label>
        Extension <small>(rings first)</small>
        <input name="extension" required maxLength={20} />
      </label>
      <label>
        Number
        <input name="number" required maxLength={40} />
      </label>
      <label>
        Domain <small>(optional)</small>
        <input name="domain" maxLength={253} />
      </label>
    </Dialog>
  )
}
