/** Says of a finding that somebody deals with it, or that it is to be left alone for a time. */
import { useSignal } from '@preact/signals'
import { send } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { may, sessionEnded } from '../api/session.ts'
import type { FoundFinding } from '../api/views.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Choice, Field, textIn } from '../parts/form.tsx'
import { Text } from '../parts/text.tsx'
import { tellRefusal } from '../parts/toast.tsx'

const HOUR_SECONDS = 3_600

/** Seconds, by their names. */
const durations: Readonly<Record<string, string>> = {
  [HOUR_SECONDS]: '1 hour',
  [4 * HOUR_SECONDS]: '4 hours',
  [8 * HOUR_SECONDS]: '8 hours',
  [24 * HOUR_SECONDS]: '1 day',
  [7 * 24 * HOUR_SECONDS]: '7 days',
  [30 * 24 * HOUR_SECONDS]: '30 days',
  until: 'until …',
}

type Question = 'acknowledge' | 'snooze'

interface FindingActionsProps {
  readonly finding: Pick<FoundFinding, 'id' | 'state'>
  readonly title: string
  readonly onDone: () => void
}

/** Buttons of a finding; none where it is not kept yet, or the user may not mark it. */
export function FindingActions({ finding: { id, state }, title, onDone }: FindingActionsProps) {
  const asked = useSignal<Question | undefined>(undefined)
  const isBusy = useSignal(false)
  if (id === null || !may('calls:write')) return null
  const close = (isDone: boolean): void => {
    asked.value = undefined
    if (isDone) onDone()
  }
  const reopen = async (): Promise<void> => {
    isBusy.value = true
    const answer = await send('POST', `/findings/${id}/reopen`, {})
    isBusy.value = false
    if (answer.kind === 'signed-out') return sessionEnded()
    if (answer.kind === 'failed') tellRefusal(`It is not open again: ${answer.message}`)
    onDone()
  }
  const labelOf = (text: string): string => `${text}: ${title}`
  return (
    <>
      <span class="buttons">
        {state === 'open' ? (
          <button
            type="button"
            aria-label={labelOf('Acknowledge')}
            onClick={() => (asked.value = 'acknowledge')}
          >
            Acknowledge
          </button>
        ) : (
          <button
            type="button"
            aria-label={labelOf('Reopen')}
            disabled={isBusy.value}
            onClick={() => void reopen()}
          >
            Reopen
          </button>
        )}
        <button
          type="button"
          aria-label={labelOf('Snooze')}
          onClick={() => (asked.value = 'snooze')}
        >
          Snooze
        </button>
      </span>
      {asked.value === 'acknowledge' && <Acknowledge id={id} title={title} onClose={close} />}
      {asked.value === 'snooze' && <Snooze id={id} title={title} onClose={close} />}
    </>
  )
}

interface QuestionProps {
  readonly id: number
  readonly title: string
  readonly onClose: (isDone: boolean) => void
}

const Acknowledge = ({ id, title, onClose }: QuestionProps) => (
  <Dialog
    title="Acknowledge this finding?"
    action="Acknowledge"
    onConfirm={(form) => {
      const note = textIn(form, 'note')
      return send('POST', `/findings/${id}/acknowledge`, note === '' ? {} : { note })
    }}
    onClose={onClose}
  >
    <p>
      <Text value={title} max={200} />: others see that you deal with it, until it is over.
    </p>
    <Field label="Note" hint="optional" name="note" maxLength={500} autoComplete="off" />
  </Dialog>
)

function Snooze({ id, title, onClose }: QuestionProps) {
  const length = useSignal(String(HOUR_SECONDS))
  return (
    <Dialog
      title="Snooze this finding?"
      action="Snooze"
      onConfirm={(form) => {
        const seconds = Number(length.value)
        const until = new Date(textIn(form, 'until'))
        const end =
          length.value !== 'until'
            ? { duration: seconds }
            : Number.isNaN(until.getTime())
              ? {}
              : { until: until.toISOString() }
        return send('POST', `/findings/${id}/snooze`, { ...end, reason: textIn(form, 'reason') })
      }}
      onClose={onClose}
    >
      <p>
        <Text value={title} max={200} />: it is listed below the others until then.
      </p>
      <Choice
        label="For"
        name="duration"
        value={length.value}
        options={durations}
        onChange={(value) => (length.value = value)}
      />
      {length.value === 'until' && (
        <Field
          label="Until"
          name="until"
          type="datetime-local"
          min={localText(now() + 60_000)}
          max={localText(now() + 30 * 24 * HOUR_SECONDS * 1_000)}
          required
        />
      )}
      <Field
        label="Reason"
        name="reason"
        required
        minLength={1}
        maxLength={500}
        autoComplete="off"
      />
    </Dialog>
  )
}

/** `2026-01-01T10:00` by the viewer's clock, as the field has it. */
function localText(ms: number): string {
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms - offsetMs).toISOString().slice(0, 16)
}
