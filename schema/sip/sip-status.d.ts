declare module 'sip-status' {
  /** Reason phrases by status. */
  const phrases: Readonly<Record<number, string>>
  export default phrases
}
