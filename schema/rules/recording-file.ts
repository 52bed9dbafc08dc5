/** Where the recording of a call is: a file named after its uuid. */

const callUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Undefined: no call of ours has such a uuid, and no other text reaches a path. */
export const recordingFile = (uuid: string): string | undefined =>
  callUuid.test(uuid) ? `${uuid}.wav` : undefined
