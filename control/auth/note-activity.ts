/** Has each response counted for the key that was presented, also where the key is not allowed from that address. */
import { type KeyActivity, NO_KEY } from './keys/key-activity.ts'
import { answerOf, type Step } from '../http/control-env.ts'

/** Before what may refuse the request. What another node asks for a client was counted there. */
export function noteActivity(activity: KeyActivity): Step {
  return (c) => {
    if (c.get('nodeRequest') !== undefined) return
    const presented = c.get('presented')
    const principal = 'principal' in presented ? presented.principal : undefined
    const keyId = principal?.kind === 'key' ? principal.keyId : NO_KEY
    answerOf(c).noted(activity.of(keyId), c.get('clientAddress'))
  }
}
