// SPDX-License-Identifier: Apache-2.0
declare module "*.txt" {
  const text: string;
  export default text;
}
