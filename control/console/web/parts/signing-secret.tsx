/** Receivers whose requests are signed: their new secret is shown once. */
import { send } from '../api/api.ts'
import type { WithSecret } from '../api/views.ts'
import { Field, textIn } from './form.tsx'
import type { Action } from './list.tsx'

export async function sendForSecret(
  path: string,
  body: object,
  onSecret: (secret: string) => void,
) {
  const answer = await send<WithSecret>('POST', path, body)
  if (answer.kind === 'ok') onSecret(answer.data.secret)
  return answer
}

/** `path`: of the receiver. */
export const rotation = (path: string): Action => ({
  text: 'Rotate',
  title: 'Rotate the secret?',
  ask: (
    <Field
      label="Hours for which the old one signs, too"
      name="hours"
      type="number"
      min={0}
      max={720}
      defaultValue="24"
      required
    />
  ),
  onConfirm: (form, onSecret) => {
    const overlap_seconds = Number(textIn(form, 'hours')) * 3_600
    return sendForSecret(`${path}/rotate`, { overlap_seconds }, onSecret)
  },
})
